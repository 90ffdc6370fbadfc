"""Every reason a condition or event may carry, with what it means and the way out.

docs/conditions.md is generated from this table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: its name, its meaning, and what a person does about it."""

    name: str
    meaning: str
    remedy: str


REASONS: tuple[Reason, ...] = (
    Reason("Available", "All replicas serve.", "Nothing to do."),
    Reason("Fits", "The plan fits with the pessimistic estimate.", "Nothing to do."),
    Reason(
        "Borderline",
        "The point estimate fits, the pessimistic one does not; the engine may refuse to start.",
        "Lower maxModelLen.min or maxNumSeqs.min, allow an fp8 cache, or offer a larger GPU.",
    ),
    Reason(
        "DoesNotFit",
        "No GPU here meets the minimums, alone or together; nothing is created.",
        "The message names the closest and what would fit: take one of those.",
    ),
    Reason(
        "NoGpuCapacity",
        "No usable GPU is known: no ready node has one, or none of the allowed products is here.",
        "Add a GPU node, check the agent (kubectl get gpunodes), or widen spec.gpus.products. Pods "
        "that run are kept.",
    ),
    Reason(
        "WaitingForGpu",
        "The plan fits, but pods wait for GPUs that others hold. A replica over several nodes is "
        "made only when all its nodes are free at once.",
        "Free GPUs or add nodes of the named type; the pods start by themselves.",
    ),
    Reason(
        "LeaderWorkerSetMissing",
        "Only several nodes together hold the model (or the one that is preferred), and the "
        "cluster has no LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) to run such a replica.",
        "Install the LeaderWorkerSet controller: the plan follows within seconds. Or take what the "
        "message says would fit on one node.",
    ),
    Reason(
        "QuotaExceeded",
        "A ResourceQuota of the namespace allows fewer GPUs than the deployment asks for. What it "
        "allows serves; no pod beyond it is asked for.",
        "Raise the quota to what the message says, or lower spec.replicas; what waits follows by "
        "itself.",
    ),
    Reason(
        "LimitsRequired",
        "A ResourceQuota on CPU or memory takes no pod that does not say how much it may use.",
        "Set what the message names in spec.resources.limits and requests, or give the namespace a "
        "LimitRange with defaults.",
    ),
    Reason(
        "PodsRefused",
        "The API server refuses to make the pods: a policy, a LimitRange, no such ServiceAccount.",
        "The message holds its words; change the policy, or the spec by them.",
    ),
    Reason(
        "ApplyRefused",
        "The API server refuses something that the plan needs: an admission policy, a missing "
        "right.",
        "The message holds its words; mend the cause: it is tried again by itself.",
    ),
    Reason(
        "NameTaken",
        "An object that the plan needs has a name that another one has; it is never taken over.",
        "Remove the named object, or give the ModelDeployment another name.",
    ),
    Reason(
        "Unschedulable",
        "GPUs are free, and the nodes that have them lack something else that the pod asks for.",
        "The message names it; ask for less in spec.resources, or make room.",
    ),
    Reason(
        "UnknownArchitecture",
        "The model's class has a memory layout the planner does not know; it does not guess.",
        "Give spec.model.facts of a class that is known, or pin --max-model-len, --max-num-seqs "
        "and a GPU count in the spec.",
    ),
    Reason(
        "ModelNotFound",
        "The repository, revision, claim, folder or file does not exist.",
        "Correct spec.model.uri or spec.model.revision.",
    ),
    Reason(
        "ModelUnreadable",
        "The model's files are there and make no sense: cut off, no JSON, or an index that names "
        "files that are missing.",
        "Upload or copy the whole checkpoint again.",
    ),
    Reason(
        "TokenRequired",
        "The repository is gated or private, and there is no token, or one without access.",
        "Name a Secret with a token in spec.model.tokenSecretRef: a Job in the deployment's "
        "namespace reads the model with it, and so does the engine. The message tells whether the "
        "Secret, its key or the token's access is missing. spec.model.facts works without.",
    ),
    Reason(
        "Inspecting",
        "A Job in the deployment's namespace reads a model that the operator cannot: a gated one "
        "with the Secret's token, or one on a claim.",
        "Wait; the message names the Job, and what keeps it waiting.",
    ),
    Reason(
        "InspectionFailed",
        "The Job that reads the model could not: out of time or memory, no node, no image, refused "
        "by a policy.",
        "Mend what the message names; a new Job follows by itself. spec.model.facts works without.",
    ),
    Reason(
        "HubUnavailable",
        "The hub does not answer. Facts already known stay in force.",
        "Nothing: it is asked again by itself. spec.model.facts works without a hub.",
    ),
    Reason(
        "InvalidSpec",
        "The object says something that cannot be meant; the message lists every problem.",
        "Correct the named paths. A running workload is left as it is meanwhile.",
    ),
    Reason("Resolved", "The model's facts are known.", "Nothing to do."),
    Reason("GpusFound", "At least one usable pool of GPUs is known.", "Nothing to do."),
    Reason("RollingOut", "Pods of the plan are being started or replaced.", "Wait."),
    Reason(
        "Starting", "The engine loads the model.", "Wait; the message says how long it may take."
    ),
    Reason(
        "EngineFailed",
        "A pod of the plan ended or keeps restarting.",
        "The message holds the engine's last words; kubectl logs --previous shows the rest.",
    ),
    Reason(
        "KVCacheTooSmall",
        "The engine found less memory for its cache than the plan counted on.",
        "Nothing at first: smaller plans are tried, at most five; status.recovery tells the story.",
    ),
    Reason(
        "EngineOutOfMemory",
        "The engine ran out of GPU memory while loading, profiling, capturing graphs or serving.",
        "Nothing at first: smaller plans are tried, at most five; status.recovery tells the story.",
    ),
    Reason(
        "StateBlocksTooFew",
        "A model with recurrent state has fewer state blocks than sequences.",
        "Nothing: fewer sequences are tried.",
    ),
    Reason(
        "SteppedDown",
        "The plan was made smaller because the engine refused the one before.",
        "Nothing; status.recovery tells what the engine said.",
    ),
    Reason(
        "BackedOff",
        "Five smaller plans were refused and there is none that served before.",
        "Read status.recovery.lastError; change the spec, which starts afresh.",
    ),
    Reason(
        "RolledBack",
        "Five smaller plans were refused; the last one that served is in force again.",
        "Read status.recovery.lastError; change the spec, which starts afresh.",
    ),
    Reason(
        "HostOutOfMemory",
        "The node's memory, not the GPU's, ran out.",
        "Raise spec.resources.limits.memory, or leave it out.",
    ),
    Reason(
        "DriverMismatch",
        "Driver and CUDA libraries do not go together.",
        "Upgrade the node's driver, or set an older spec.engine.image.",
    ),
    Reason(
        "EngineCommunication",
        "The engine's ranks could not talk to each other.",
        "Check NCCL, /dev/shm and the links between the GPUs.",
    ),
    Reason(
        "EngineUnsupported",
        "The engine does not know the model, its quantization or the parallelism asked for.",
        "The message says which; set another image, model form or GPU.",
    ),
    Reason(
        "ImagePullFailed",
        "The engine image cannot be pulled.",
        "Correct spec.engine.image or spec.imagePullSecrets.",
    ),
    Reason("ScaledToZero", "spec.replicas is 0.", "Nothing to do."),
    Reason("PlanHolds", "The running plan is the one that would be made today, or near it.", ""),
    Reason(
        "ResizeRecommended",
        "Another plan would gain more than resize.minimumGainPercent; resize.mode keeps this one.",
        "Set spec.resize.mode: Automatic to take it.",
    ),
    Reason(
        "ResizePending",
        "Another plan gains enough and waits for resize.stabilizationSeconds to pass.",
        "Nothing to do.",
    ),
    Reason(
        "PlanNoLongerFits",
        "The pool the plan was made for is gone or smaller than it was.",
        "Nothing where resize.mode is Automatic: a new plan follows when one fits.",
    ),
    Reason(
        "EngineUpdateAvailable",
        "The chart's default engine image is newer than the one pinned here.",
        "Set spec.engine.image to take it; the plan is then made anew.",
    ),
    Reason("Observed", "A started engine reported its cache; the plan was compared.", ""),
    Reason(
        "Verified",
        "The load test of this plan was answered whole; status.verify has the figures.",
        "Nothing to do.",
    ),
    Reason(
        "Verifying",
        "The load test of this plan waits for all replicas, or is under way.",
        "Wait; the message names the Job, and what keeps it waiting.",
    ),
    Reason(
        "LoadFailed",
        "Under load an engine died or requests failed.",
        "Where an engine died a smaller plan follows by itself; of failed requests the logs of the "
        "Job and of the engines tell more.",
    ),
    Reason(
        "VerifyFailed",
        "The load test could not be carried out, so nothing is known.",
        "Mend what the message names, then set spec.verify.enabled to false and to true again.",
    ),
    Reason(
        "VerifyUnsupported",
        "This release of the engine has no load test that runs without a GPU.",
        "Set spec.engine.image to vLLM 0.11.1 or newer, or spec.verify.enabled to false.",
    ),
    Reason("Resized", "The plan changed because the cluster did.", "Nothing to do."),
    Reason("Decided", "A plan was made for a new or changed spec.", "Nothing to do."),
    Reason("Settled", "Nothing is left to do.", "Nothing to do."),
)
BY_NAME = {reason.name: reason for reason in REASONS}
