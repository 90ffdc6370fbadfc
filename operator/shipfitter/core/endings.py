"""How a Job that reads a model ends: an exit code for each kind of answer, told and understood."""

from shipfitter.errors import (
    HubUnavailableError,
    InspectionFailedError,
    InvalidSpecError,
    ModelNotFoundError,
    ModelUnreadableError,
    TokenRefusedError,
    TokenRequiredError,
    UnknownArchitectureError,
    UserError,
)

MISTAKE = 1  # of ours: a traceback in its log
USAGE = 2
OUT_OF_MEMORY = 12  # ENOMEM: it noticed by itself
OUT_OF_TIME = 124  # as timeout(1) says
KILLED = 137  # SIGKILL: by the kernel for want of memory, or by a node that goes down

_BY_CODE: dict[int, type[UserError]] = {
    10: TokenRequiredError,
    11: TokenRefusedError,
    20: ModelNotFoundError,
    21: ModelUnreadableError,
    22: UnknownArchitectureError,
    30: HubUnavailableError,
    OUT_OF_MEMORY: InspectionFailedError,
    OUT_OF_TIME: InspectionFailedError,
}
_BY_KIND = {kind: code for code, kind in _BY_CODE.items()} | {InspectionFailedError: MISTAKE}


def exit_code(error: UserError) -> int:
    """What the Job ends with, by the error's nearest kind.

    >>> exit_code(TokenRefusedError("no access"))
    11
    """
    return next((_BY_KIND[kind] for kind in type(error).__mro__ if kind in _BY_KIND), USAGE)


def ended_with(code: int, words: str) -> UserError:
    """The error that an ended Job tells, with its own words.

    >>> ended_with(20, "pvc://models/x: no such folder").reason
    'ModelNotFound'
    """
    if code == USAGE:
        return InvalidSpecError((words,))
    return _BY_CODE.get(code, InspectionFailedError)(words)
