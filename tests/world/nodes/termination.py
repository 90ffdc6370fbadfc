"""A container's last words: what the kubelet keeps of its message file and its log."""

import os
from pathlib import Path

# Source: Kubernetes 1.36, pkg/kubelet/container/runtime.go and kuberuntime_container.go
MESSAGE_BYTES = 4096
POD_MESSAGE_BYTES = 12_288  # all containers of a pod together
LOG_TAIL_LINES = 80
LOG_TAIL_BYTES = 2048


def last_bytes(path: Path, limit_bytes: int) -> bytes:
    """The end of a file; nothing where there is none."""
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - limit_bytes))
            return file.read(limit_bytes)
    except OSError:
        return b""


def log_tail(lines: list[bytes]) -> bytes:
    """The last 80 lines, of these the last 2,048 bytes."""
    return b"".join(lines[-LOG_TAIL_LINES:])[-LOG_TAIL_BYTES:]


def message(
    path: Path, *, log_lines: list[bytes], policy: str, exit_code: int, containers: int = 1
) -> str:
    """The message file's end; the log's end if that is empty, asked for, and it went wrong."""
    limit_bytes = min(MESSAGE_BYTES, POD_MESSAGE_BYTES // max(1, containers))
    words = last_bytes(path, limit_bytes)
    if not words and policy == "FallbackToLogsOnError" and exit_code != 0:
        words = log_tail(log_lines)
    return words.decode(errors="replace")
