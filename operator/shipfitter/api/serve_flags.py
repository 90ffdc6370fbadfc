"""Every flag of `vllm serve`, 0.6 to 0.33, by what follows it: only so can a model's name be told
from a flag's value, and a misspelt flag from one that we need not know.

Source: vLLM 0.8.5, 0.12.0, 0.24.0 and 0.33.0, vllm/engine/arg_utils.py and the server's
cli_args.py; older flags from the documentation of 0.6 and 0.7.
"""

from collections.abc import Mapping


def _flags(words: str) -> frozenset[str]:
    return frozenset(f"--{word}" for word in words.split())


# Nothing follows: --x, --no-x. (Releases up to 0.8 also take --x True and --x=False.)
SWITCHES = _flags("""
    aggregate-engine-logging allow-credentials allow-deprecated-quantization async-scheduling
    calculate-kv-scales cohere-is-reasoning-model cudagraph-metrics data-parallel-external-lb
    data-parallel-hybrid-lb data-parallel-multi-port-external-lb dcp-q-replicate
    disable-async-output-proc disable-cascade-attn disable-chunked-mm-input
    disable-custom-all-reduce disable-fastapi-docs disable-frontend-multiprocessing
    disable-hybrid-kv-cache-manager disable-log-requests disable-log-stats
    disable-logprobs-during-spec-decoding disable-mm-preprocessor-cache
    disable-nccl-for-dp-synchronization disable-sliding-window disable-uvicorn-access-log
    enable-auto-tool-choice enable-batch-sharded-sampling enable-chunked-prefill
    enable-cumem-allocator enable-dbo enable-elastic-ep enable-ep-weight-filter enable-eplb
    enable-expert-parallel enable-fault-tolerance enable-flash-late-interaction
    enable-flashinfer-autotune enable-force-include-usage enable-hc-sp
    enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs enable-log-requests
    enable-logging-iteration-details enable-lora enable-lora-bias
    enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint
    enable-mfu-metrics enable-mixed-moe-lora-format enable-mm-embeds enable-moe-shared-loras
    enable-multimodal-encoder-data-parallel enable-nccl-comm-suspend enable-offline-docs
    enable-per-request-metrics enable-prefix-caching enable-prompt-adapter
    enable-prompt-embeds enable-prompt-tokens-details enable-reasoning
    enable-request-id-headers enable-return-routed-experts enable-scale-out
    enable-server-load-tracking enable-shm-tensor-arena enable-sleep-mode enable-ssl-refresh
    enable-tokenizer-info-endpoint enable-tower-connector-lora enable-trace-replay
    enforce-eager engine-use-ray eplb-log-balancedness exclude-log-deltas
    exclude-tools-when-tool-choice-none fail-on-environ-validation fully-sharded-loras grpc
    guided-decoding-disable-additional-properties guided-decoding-disable-any-whitespace
    guided-decoding-disable-fallback headless help interleave-mm-strings jit-monitor-verbose
    kv-cache-metrics kv-sharing-fast-prefill language-model-only log-error-stack
    long-prefill-token-threshold-adaptive mm-cache-preprocessor mm-device-do-normalize
    mm-encoder-only monokernel multi-step-stream-outputs numa-bind ray-workers-use-nsight
    return-sampling-mask return-token-ids return-tokens-as-token-ids
    scheduler-reserve-full-isl skip-mm-profiling skip-tokenizer-init
    sleep-mode-offload-cudagraph specialize-active-lora speculative-disable-mqa-scorer
    swa-bounded-replay tokens-only trust-remote-code trust-request-chat-template
    trust-request-mm-kwargs use-fp64-gumbel use-padding-aware-scheduling use-replayssm
    use-tqdm-on-load use-v2-block-manager worker-use-ray
""")

# One value follows.
SINGLES = _flags("""
    additional-config all2all-backend allowed-headers allowed-local-media-path allowed-methods
    allowed-origins anthropic-disabled-thinking-effort api-server-count attention-backend
    attention-config aux-output-config block-size chat-template chat-template-content-format
    chat-template-text-format code-revision cohere-format compilation-config config
    config-format convert cp-kv-cache-interleave-size cpu-distributed-timeout-seconds
    cpu-offload-gb custom-histogram-buckets data-parallel-address data-parallel-backend
    data-parallel-rank data-parallel-rank-local data-parallel-rpc-port data-parallel-size
    data-parallel-size-local data-parallel-start-rank data-parallel-supervisor-port
    dbo-decode-token-threshold dbo-prefill-token-threshold dcp-comm-backend
    dcp-kv-cache-interleave-size decode-context-parallel-size default-chat-template-kwargs
    default-mm-loras device device-ids diffusion-config disable-access-log-for-endpoints
    distributed-executor-backend distributed-timeout-seconds download-dir
    dp-supervisor-probe-failure-threshold dp-supervisor-probe-interval-s
    dp-supervisor-probe-timeout-s dp-sync-interval dtype ec-manager-config ec-transfer-config
    elastic-ep-max-dp-size engram-config eplb-config eplb-step-interval eplb-window-size
    expert-placement-strategy fault-tolerance-config fingerprint-mode fingerprint-value
    gdn-prefill-backend generation-config gpu-memory-utilization grpc-port
    guided-decoding-backend h11-max-header-count h11-max-incomplete-event-size hf-config-path
    hf-overrides host io-processor-plugin ir-op-priority jit-monitor-mode kda-decode-backend
    kda-prefill-backend kernel-config kv-cache-dtype kv-cache-memory-bytes
    kv-cache-metrics-sample kv-events-config kv-offloading-backend kv-offloading-size
    kv-transfer-config limit-mm-per-prompt linear-backend load-format log-config-file
    log-level logging-config logits-processor-pattern logprobs-mode
    long-prefill-token-threshold lora-dtype lora-extra-vocab-size mamba-backend
    mamba-block-size mamba-cache-dtype mamba-cache-mode mamba-cache-philox-rounds
    mamba-ssm-cache-dtype mamba-ssu-algorithm master-addr master-port max-cpu-loras
    max-cudagraph-capture-size max-log-len max-logprobs max-long-partial-prefills
    max-lora-cls-labels max-lora-rank max-loras max-model-len max-num-active-seqs
    max-num-batched-tokens max-num-partial-prefills max-num-queued-reqs max-num-queued-tokens
    max-num-scheduled-tokens max-num-seqs max-parallel-loading-workers
    max-prompt-adapter-token max-prompt-adapters max-seq-len-to-capture media-io-kwargs
    mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path
    mm-encoder-fp8-scale-save-margin mm-encoder-fp8-scale-save-path mm-encoder-tp-mode
    mm-hasher-algorithm mm-ipc-gpu-memory-gb mm-processor-cache-gb mm-processor-cache-type
    mm-processor-device mm-processor-kwargs mm-shm-cache-max-object-size-mb mm-tensor-ipc
    model model-class-overrides model-impl model-loader-extra-config moe-backend
    ngram-prompt-lookup-max ngram-prompt-lookup-min nnodes node-rank num-gpu-blocks-override
    num-lookahead-slots num-redundant-experts num-scheduler-steps num-speculative-tokens
    offload-backend offload-group-size offload-num-in-group offload-prefetch-step
    optimization-level otlp-traces-endpoint override-attention-dtype
    override-generation-config override-neuron-config override-pooler-config
    per-request-spec-decode-metrics performance-mode pipeline-parallel-size pooler-config port
    preemption-mode prefill-context-parallel-size prefill-schedule-interval
    prefix-cache-retention-interval prefix-caching-hash-algo prefix-match-unit profiler-config
    pt-load-map-location qlora-adapter-name-or-path quantization quantization-config
    quantization-param-path reasoning-config reasoning-effort-map reasoning-parser
    reasoning-parser-plugin renderer-num-workers replayssm-buffer-len response-role revision
    root-path rope-scaling rope-theta runner safetensors-load-strategy
    safetensors-prefetch-block-size safetensors-prefetch-num-threads scheduler-cls
    scheduler-delay-factor scheduling-policy seed show-hidden-metrics-for-version
    shutdown-timeout sleep-mode-backend sparse-indexer-topk-backend
    spec-decoding-acceptance-method spec-method spec-model spec-tokens speculative-config
    speculative-disable-by-batch-size speculative-draft-tensor-parallel-size
    speculative-max-model-len speculative-model speculative-model-quantization
    sse-keep-alive-interval ssl-ca-certs ssl-cert-reqs ssl-certfile ssl-ciphers ssl-keyfile
    stream-interval structured-outputs-config swap-space task tensor-parallel-size tokenizer
    tokenizer-mode tokenizer-pool-extra-config tokenizer-pool-size tokenizer-pool-type
    tokenizer-revision tool-call-parser tool-parser-plugin tool-server tool-strict-level
    typical-acceptance-sampler-posterior-alpha typical-acceptance-sampler-posterior-threshold
    ubatch-size uds uvicorn-log-level video-pruning-method video-pruning-rate watchdog-config
    watermark watermark-config weight-transfer-config worker-cls worker-extension-cls
""")

# Values up to the next flag.
LISTS = _flags("""
    allowed-media-domains api-key collect-detailed-traces cpu-offload-params cuda-graph-sizes
    cudagraph-capture-sizes ignore-patterns kv-cache-dtype-skip-layers logits-processors
    long-lora-scaling-factors lora-modules lora-target-modules middleware numa-bind-cpus
    numa-bind-nodes offload-params prompt-adapters served-model-name
    sleep-preserve-parameter-names
""")

# One value or none.
OPTIONALS = _flags("hf-token")

EVERY_FLAG = SWITCHES | SINGLES | LISTS | OPTIONALS

# First release that refuses the flag, where it was dropped: flags that one of the four releases
# above has and the next has not count as gone from that next one.
_DROPPED: Mapping[tuple[int, int], str] = {
    (0, 11): "max-seq-len-to-capture rope-scaling rope-theta",
    (0, 12): """
        chat-template-text-format device disable-async-output-proc
        disable-logprobs-during-spec-decoding enable-lora-bias
        enable-prompt-adapter enable-reasoning engine-use-ray
        eplb-log-balancedness eplb-step-interval eplb-window-size
        guided-decoding-backend guided-decoding-disable-additional-properties
        guided-decoding-disable-any-whitespace guided-decoding-disable-fallback
        long-lora-scaling-factors lora-extra-vocab-size max-prompt-adapter-token
        max-prompt-adapters mm-cache-preprocessor multi-step-stream-outputs
        ngram-prompt-lookup-max ngram-prompt-lookup-min num-lookahead-slots
        num-redundant-experts num-scheduler-steps num-speculative-tokens
        override-neuron-config override-pooler-config preemption-mode
        prompt-adapters qlora-adapter-name-or-path quantization-param-path
        scheduler-delay-factor spec-decoding-acceptance-method
        speculative-disable-by-batch-size speculative-disable-mqa-scorer
        speculative-draft-tensor-parallel-size speculative-max-model-len
        speculative-model speculative-model-quantization
        tokenizer-pool-extra-config tokenizer-pool-size tokenizer-pool-type
        typical-acceptance-sampler-posterior-alpha
        typical-acceptance-sampler-posterior-threshold
        use-padding-aware-scheduling use-v2-block-manager worker-use-ray
    """,
    (0, 13): "cuda-graph-sizes",
    (0, 18): "swap-space",
    (0, 24): """
        disable-frontend-multiprocessing disable-mm-preprocessor-cache
        enable-multimodal-encoder-data-parallel logits-processor-pattern task
    """,
    (0, 27): "max-long-partial-prefills max-num-partial-prefills",
    (0, 28): "calculate-kv-scales",
    (0, 33): "override-attention-dtype",
}
GONE_SINCE: Mapping[str, tuple[int, int]] = {
    flag: release for release, words in _DROPPED.items() for flag in _flags(words)
}
