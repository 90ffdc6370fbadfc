"""Why an engine did not start, or died: one word for each thing its log can say."""

from enum import StrEnum


class Refusal(StrEnum):
    """The words of `shipfitter estimate` and `compare-log`."""

    KV_CACHE_TOO_SMALL = "KVCacheTooSmall"
    NO_CACHE_BLOCKS = "NoCacheBlocks"
    FREE_MEMORY = "FreeMemory"
    OUT_OF_MEMORY_LOAD = "OutOfMemoryLoad"
    OUT_OF_MEMORY_PROFILE = "OutOfMemoryProfile"
    OUT_OF_MEMORY_SAMPLER = "OutOfMemorySampler"
    OUT_OF_MEMORY_GRAPHS = "OutOfMemoryGraphs"
    OUT_OF_MEMORY_SERVING = "OutOfMemoryServing"
    STATE_BLOCKS_TOO_FEW = "StateBlocksTooFew"
    INVALID_PARALLELISM = "InvalidParallelism"
    UNSUPPORTED_QUANTIZATION = "UnsupportedQuantization"
    UNSUPPORTED_ARCHITECTURE = "UnsupportedArchitecture"
    TOKEN_REQUIRED = "TokenRequired"
    COMMUNICATION = "Communication"
    HOST_OUT_OF_MEMORY = "HostOutOfMemory"
    MAX_MODEL_LEN_TOO_LONG = "MaxModelLenTooLong"
    DRIVER_MISMATCH = "DriverMismatch"
    OTHER = "Other"
