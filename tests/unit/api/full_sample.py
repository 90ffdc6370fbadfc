"""One object of each kind with every field of its schema set."""

from typing import Any

AT = "2026-03-01T12:00:00Z"


def condition(type_: str, status: str = "True") -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "observedGeneration": 3,
        "lastTransitionTime": AT,
        "reason": "Available",
        "message": "2 of 2 replicas serve",
    }


def variant() -> dict[str, Any]:
    return {
        "name": "qwen-1a2b3c4d",
        "pool": "nvidia-l40s-8",
        "gpuProduct": "NVIDIA-L40S",
        "gpusPerReplica": 2,
        "tensorParallelSize": 2,
        "pipelineParallelSize": 1,
        "nodesPerReplica": 1,
        "replicas": 2,
        "modelUri": "hf://Qwen/Qwen3-32B",
        "kvCacheDtype": "auto",
        "maxModelLen": 40_960,
        "maxNumSeqs": 32,
        "maxNumBatchedTokens": 2048,
        "gpuMemoryUtilization": 0.93,
        "verdict": "Fits",
        "budget": {
            "totalBytes": 47_000_000_000,
            "requestedBytes": 43_710_000_000,
            "weightsBytes": 32_800_000_000,
            "activationBytes": 1_000_000_000,
            "cudaGraphBytes": 500_000_000,
            "overheadBytes": 300_000_000,
            "kvCacheBytes": 9_110_000_000,
            "notRequestedBytes": 3_290_000_000,
            "marginBytes": 400_000_000,
            "upsideBytes": 200_000_000,
            "unchargedCudaGraphBytes": 1,
            "outsideBytes": 500_000_000,
            "outsideLowBytes": 400_000_000,
            "outsideHighBytes": 600_000_000,
            "loadPeakBytes": 33_000_000_000,
        },
        "enablePrefixCaching": True,
        "maxCudagraphCaptureSize": 64,
        "asyncScheduling": True,
        "modelRunner": "V2",
        "attentionBlockSize": 16,
        "kvCacheTokens": 68_000,
        "maxConcurrency": 1.66,
        "runningAtTypical": 32,
        "capacitySource": "Measured",
        "limitedBy": "KV cache",
        "numGpuBlocks": 4250,
        "engineVersion": "0.33.0",
        "modelRevision": "9216db5781bf21249d130ec9da846c4624c16137",
        "calibratedObservations": 3,
        "decidedAt": "2026-03-01T12:00:00Z",
        "cudagraphCaptureSizes": [1, 2, 4, 8],
        "settings": {"num_speculative_tokens": "3"},
        "oneRequestShare": 0.6,
        "nativeMaxModelLen": 40_960,
        "preferredReached": 2,
        "allocation": "DevicePlugin",
        "placement": {
            "selector": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            "selectorIsExact": True,
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
            "resourceName": "nvidia.com/gpu",
            "gpusPerNode": 8,
            "nominalBytes": 48_305_799_168,
            "foreignUsedBytes": 0,
            "computeCapability": "8.9",
            "sharing": "none",
            "replicasPerGpu": 1,
            "migProfile": "",
            "hostMemoryBytes": 540_000_000_000,
            "nvlink": False,
            "otherProducts": ["NVIDIA-L4"],
            "unified": False,
            "totalBytes": 47_676_000_000,
        },
    }


def plan() -> dict[str, Any]:
    return {
        "variants": [variant()],
        "alternatives": [{"summary": "FP8 weights", "wouldAllow": "max_num_seqs 64"}],
        "frontier": [{"maxModelLen": 32_768, "maxNumSeqs": 40}],
        "inputsHash": "0123456789abcdef",
        "decidedAt": AT,
        "reason": "Decided",
        "why": "two GPUs hold what one does not",
    }


def model_deployment() -> dict[str, Any]:
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": "qwen", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "model": {
                "uri": "hf://Qwen/Qwen3-32B",
                "revision": "main",
                "tokenSecretRef": {"name": "hf", "key": "token"},
                "alternatives": [
                    {
                        "uri": "hf://Qwen/Qwen3-32B-FP8",
                        "revision": "v1",
                        "facts": {"config": {"architectures": ["Qwen3ForCausalLM"]}},
                    },
                    {"uri": "pvc://models/qwen3/awq"},
                ],
                "facts": {
                    "config": {"architectures": ["Qwen3ForCausalLM"], "rope_theta": 1e6},
                    "weightsBytes": 65_524_246_528,
                },
            },
            "engine": {
                "kind": "vllm",
                "image": "registry.example:5000/vllm@sha256:" + "0" * 64,
                "version": "0.33.0",
                "args": ["--enable-auto-tool-choice", "--max-num-batched-tokens=2k"],
                "env": [
                    {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"},
                    {
                        "name": "VLLM_API_KEY",
                        "valueFrom": {
                            "secretKeyRef": {"name": "keys", "key": "api", "optional": True}
                        },
                    },
                    {
                        "name": "REGION",
                        "valueFrom": {"configMapKeyRef": {"name": "site", "key": "region"}},
                    },
                    {
                        "name": "POD_IP",
                        "valueFrom": {
                            "fieldRef": {"fieldPath": "status.podIP", "apiVersion": "v1"}
                        },
                    },
                ],
            },
            "workload": {
                "maxModelLen": {"min": 8192, "preferred": 32_768},
                "maxNumSeqs": {"min": 4, "preferred": 64},
                "typicalTokens": 3000,
                "sizeFor": "Typical",
                "prefer": "Balanced",
            },
            "gpus": {
                "products": ["NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB"],
                "perReplica": {"max": 8},
                "tensorParallelSize": 2,
                "kvCacheDtype": "auto",
                "allocation": "DevicePlugin",
                "allowShared": False,
            },
            "placement": {
                "nodeSelector": {"topology.kubernetes.io/zone": "a"},
                "tolerations": [
                    {
                        "key": "team",
                        "operator": "Equal",
                        "value": "ml",
                        "effect": "NoExecute",
                        "tolerationSeconds": 60,
                    }
                ],
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {
                            "matchLabels": {"app.kubernetes.io/instance": "qwen"},
                            "matchExpressions": [
                                {"key": "tier", "operator": "In", "values": ["gold"]}
                            ],
                        },
                        "minDomains": 1,
                        "matchLabelKeys": ["pod-template-hash"],
                        "nodeAffinityPolicy": "Honor",
                        "nodeTaintsPolicy": "Honor",
                    }
                ],
                "priorityClassName": "serving",
            },
            "storage": {"cacheClaim": "hf-cache"},
            "imagePullSecrets": [{"name": "registry"}],
            "serviceAccountName": "engine",
            "resources": {
                "requests": {"cpu": 4, "memory": "64Gi"},
                "limits": {"cpu": "8", "memory": "96Gi"},
            },
            "rollout": {"mode": "Auto"},
            "resize": {
                "mode": "Automatic",
                "minimumGainPercent": 15,
                "stabilizationSeconds": 300,
            },
            "verify": {"enabled": False},
            "template": {
                "metadata": {"annotations": {"prometheus.io/scrape": "true"}},
                "spec": {
                    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["proxy"]}],
                    "containers": [
                        {"name": "engine", "lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}
                    ],
                },
            },
        },
        "status": {
            "observedGeneration": 3,
            "conditions": [
                condition("Ready"),
                condition("ModelResolved"),
                condition("CapacityKnown"),
                condition("Planned"),
                condition("Available"),
                condition("Calibrated"),
                condition("Verified", "Unknown"),
                condition("Drifted", "False"),
                condition("Reconciling", "False"),
                condition("Stalled", "False"),
            ],
            "model": {
                "uri": "hf://Qwen/Qwen3-32B",
                "revision": "9216db5781bf21249d130ec9da846c4624c16137",
                "architecture": "Qwen3ForCausalLM",
                "weightsBytes": 65_524_246_528,
                "kvBytesPerToken": 262_144,
                "nativeMaxModelLen": 40_960,
                "quantization": "none",
            },
            "plan": plan(),
            "lastGoodPlan": plan(),
            "observed": [
                {
                    "variant": "qwen-1a2b3c4d",
                    "kvCacheTokens": 68_432,
                    "maxConcurrency": 1.67,
                    "predictionErrorPercent": -0.6,
                    "at": AT,
                }
            ],
            "recovery": {
                "attempts": 1,
                "lastError": "the engine needs 3.1 GiB of cache and had 2.9 GiB",
                "lastStep": "max_model_len 40960 -> 38912",
                "inputsHash": "0123456789abcdef",
                "nextAttemptAt": AT,
                "bounds": [{"pool": "nvidia-l40s-8", "setting": "max_model_len", "value": 38_912}],
            },
            "verify": {
                "planHash": "0123456789abcdef",
                "at": AT,
                "requests": 128,
                "failed": 1,
                "atOnce": 64,
                "inputTokens": 2872,
                "outputTokens": 256,
                "seconds": 61.5,
                "requestsPerSecond": 2.08,
                "outputTokensPerSecond": 532.8,
                "meanFirstTokenMilliseconds": 812.4,
                "p99FirstTokenMilliseconds": 1904.0,
                "meanTokenMilliseconds": 31.2,
                "preemptions": 2,
                "engineError": "CUDA out of memory",
                "error": "out of time",
            },
            "engine": {"image": "vllm/vllm-openai:v0.33.0", "version": "0.33.0"},
            "summary": {
                "model": "Qwen3-32B",
                "gpu": "NVIDIA-L40S",
                "gpus": "2",
                "tp": "2",
                "context": "40960",
                "seqs": "32",
                "ready": "2/2",
            },
            "replicas": 2,
            "readyReplicas": 2,
            "selector": "app.kubernetes.io/instance=qwen,shipfitter.dev/serves=true",
        },
    }


def gpu_node() -> dict[str, Any]:
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "GPUNode",
        "metadata": {"name": "gpu-1"},
        "status": {
            "observedAt": AT,
            "agentVersion": "0.1.0",
            "bootId": "3a1f0c7e-1111-2222-3333-444455556666",
            "driver": {"version": "580.95.05", "cuda": "13.0"},
            "hostMemoryBytes": 540_000_000_000,
            "gpus": [
                {
                    "uuid": "GPU-1",
                    "product": "NVIDIA-A100-SXM4-80GB",
                    "computeCapability": "8.0",
                    "memory": {
                        "kind": "dedicated",
                        "totalBytes": 85_899_345_920,
                        "reservedBytes": 600_000_000,
                        "foreignUsedBytes": 0,
                    },
                    "ecc": True,
                    "migEnabled": True,
                    "health": {"state": "Healthy", "reason": ""},
                    "numaNode": 0,
                    "migDevices": [
                        {"uuid": "MIG-1", "profile": "1g.10gb", "memoryBytes": 10_200_547_328}
                    ],
                }
            ],
            "nvlinkIslands": [[0]],
            "allocated": ["MIG-1"],
            "usableGpus": 1,
            "conditions": [condition("Ready")],
            "summary": {
                "gpu": "NVIDIA-A100-SXM4-80GB",
                "count": "1",
                "memory": "79.4 GiB",
                "free": "0",
                "computeCapability": "8.0",
                "ready": "True",
            },
        },
    }


def calibration() -> dict[str, Any]:
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "Calibration",
        "metadata": {"name": "nvidia-l40s-1"},
        "spec": {
            "gpuProduct": "NVIDIA-L40S",
            "engineMinor": "0.33",
            "architecture": "Qwen3ForCausalLM",
            "weightFormat": "bfloat16",
            "tensorParallelSize": 2,
            "image": "registry.example/vllm:ours",
            "argumentsHash": "89abcdef",
        },
        "status": {
            "residualBytes": -12_000_000,
            "residual": "-0.01 GiB",
            "spreadBytes": 30_000_000,
            "observations": 3,
            "lastObservedAt": AT,
            "lastVariant": "default/qwen-1a2b3c4d",
        },
    }


SAMPLES = {
    "ModelDeployment": model_deployment,
    "GPUNode": gpu_node,
    "Calibration": calibration,
}
