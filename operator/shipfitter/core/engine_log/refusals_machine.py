"""How drivers, networks and hosts say no, and what only says that something died.

Read in vLLM 0.6.6, 0.7.3, 0.14.1, 0.17.1, 0.20.0, 0.24.0, 0.27.1 and 0.33.0, and in public logs of
the releases between; the file is named above each group.
"""

from shipfitter.core.engine_log.sentences import Sentence, say
from shipfitter.core.refusals import Refusal

MACHINE: tuple[Sentence, ...] = (
    # the driver, the CUDA runtime, the container toolkit, the dynamic linker
    say(
        Refusal.DRIVER_MISMATCH,
        "driver",
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|unsupported "
        r"display driver|Driver/library version mismatch|Found no NVIDIA driver|driver/library "
        r"version|couldn't communicate with the NVIDIA driver|nvidia-container-cli:.{0,120}driver|"
        r"could not select device driver",
    ),
    say(
        Refusal.DRIVER_MISMATCH,
        "cuda",
        r"forward compatibility was attempted on non supported HW|unsatisfied condition: cuda|"
        r"No CUDA GPUs are available|libcuda\.so\S* cannot open shared object|CUDA unknown error|"
        r"libcuda\.so\.1: cannot|provided PTX was compiled with an unsupported toolchain",
    ),
    say(
        Refusal.DRIVER_MISMATCH,
        "not yet initialized",
        r"(?:CUDA error|Error 802): system not yet initialized",
    ),
    say(
        Refusal.DRIVER_MISMATCH,
        "kernel image",
        r"no kernel image is available for execution on the device",
    ),
    say(
        Refusal.DRIVER_MISMATCH,
        "PTX",
        r"PTX was compiled with an unsupported toolchain",
    ),
    say(Refusal.DRIVER_MISMATCH, "infer device type", r"Failed to infer device type"),
    say(
        Refusal.DRIVER_MISMATCH,
        "symbol",
        r"ImportError: \S+\.so\S*: (?:undefined symbol|symbol .{0,80} version)|undefined symbol: "
        r"(?:_ZN|cu|nccl|nvml)\w+",
    ),
    say(
        Refusal.DRIVER_MISMATCH,
        "shared object file",
        r"ImportError: lib(?:cud\w*|cu\w+|nv\w+|nccl)\.so\S*: cannot open shared object file",
    ),
    # NCCL, gloo, shared memory
    say(
        Refusal.COMMUNICATION,
        "nccl",
        r"NCCL error|nccl(?:System|UnhandledCuda|Internal|Remote)Error|ncclInvalidUsage|"
        r"shared memory segment \S*/dev/shm/nccl|NCCL watchdog thread terminated",
    ),
    say(
        Refusal.COMMUNICATION,
        "Dist",
        r"DistBackendError|DistNetworkError|DistStoreError",
    ),
    say(
        Refusal.COMMUNICATION,
        "collective operation timeout",
        r"Watchdog caught collective operation timeout",
    ),
    say(
        Refusal.COMMUNICATION,
        "/dev/shm",
        r"No space left on device.{0,80}/dev/shm|/dev/shm.{0,80}No space left on device|"
        r"insufficient shared memory \(shm\)",
    ),
    say(Refusal.COMMUNICATION, "Bus error", r"\bBus error\b"),
    say(
        Refusal.COMMUNICATION,
        "gloo",
        r"Gloo connectFullMesh failed|gloo/transport/.{0,160}(?:Connection|timed? ?out|Timed)",
    ),
    say(
        Refusal.COMMUNICATION,
        "tcpstore",
        r"TCPStore.{0,80}(?:failed|timed out|connection)|recvValue failed on",
    ),
    say(
        Refusal.COMMUNICATION,
        "server socket has failed",
        r"server socket has failed to listen",
    ),
    say(Refusal.COMMUNICATION, "peer access", r"peer access is not supported between"),
    # distributed/utils.py, v1/engine/core_client.py
    say(
        Refusal.COMMUNICATION,
        "timed out",
        r"Barrier (?:departure )?timed out after|Timed out waiting for (?:new )?engines to send",
    ),
    say(
        Refusal.COMMUNICATION,
        "custom_all_reduce.cu",
        r"Cuda error \S*custom_all_reduce\.cu\w*:\d+",
    ),
    # the host
    say(
        Refusal.HOST_OUT_OF_MEMORY,
        "OOMKilled",
        r"\bOOM\s*Killed\b",
    ),
    say(Refusal.HOST_OUT_OF_MEMORY, "oom", r"\bDetected \d+ oom[_-]kill event"),
    say(
        Refusal.HOST_OUT_OF_MEMORY,
        "killed",
        r"Out of memory: Killed process|Memory cgroup out of memory|task was killed due to the "
        r"node running low on memory|(?:^|\d |\] )Killed\s*(?:$|python|vllm)|was killed by signal "
        r"9|Killed by signal: SIGKILL|signal: killed",
    ),
    say(
        Refusal.HOST_OUT_OF_MEMORY,
        "code",
        r"(?:exit(?:ed)?(?: with)?\s*(?:status|code)|returncode|exitcode)[:= ]{1,2}\(?"
        r"(?P<exit_code>137|-9)\b",
    ),
    say(
        Refusal.HOST_OUT_OF_MEMORY,
        "core proc",
        r"Failed core proc\(s\): \{[^}]*:\s*(?P<exit_code>-9)\b",
    ),
    say(
        Refusal.HOST_OUT_OF_MEMORY,
        "memory",
        r"DefaultCPUAllocator: (?:not enough memory|can't allocate memory)|\[Errno 12\] Cannot "
        r"allocate memory|^MemoryError\b|ray\.exceptions\.OutOfMemoryError",
    ),
    # What only says that something died: the cause lies elsewhere, or is none of the above.
    say(Refusal.OTHER, "core initialization failed", r"Engine core initialization failed"),
    say(Refusal.OTHER, "failed to start", r"(?:EngineCore|WorkerProc) failed to start"),
    say(Refusal.OTHER, "process failed to start", r"Engine process failed to start"),
    say(Refusal.OTHER, "fatal error", r"EngineCore encountered a fatal error"),
    say(Refusal.OTHER, "DeadError", r"\b(?:Async)?EngineDeadError\b"),
    say(
        Refusal.OTHER,
        "error: ",
        r"(?:vllm(?: serve)?|api_server\.py|vllm-\w+): error: (?P<rest>[^\n]{0,300})",
    ),
    say(Refusal.OTHER, "died unexpectedly", r"\b(?:proc|process) \S+ died unexpectedly"),
    say(
        Refusal.OTHER,
        "fault",
        r"^\s*Segmentation fault|Fatal Python error: (?:Segmentation fault|Aborted)|SIGSEGV "
        r"received",
    ),
    say(
        Refusal.OTHER,
        "unexpected system error",
        r"worker died or was killed while executing a task by an unexpected system error",
    ),
    say(Refusal.OTHER, "core dumped", r"Aborted\s+\(core dumped\)"),
    say(Refusal.OTHER, "profiling", r"Error in memory profiling\. Initial free memory"),
)
