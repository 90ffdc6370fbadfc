"""Mistakes a user can mend: each has a reason and a message that ends with the way out."""


class UserError(Exception):
    """Something the user must change: a condition with `reason`, exit code 2 of the CLI."""

    reason = "InvalidSpec"


class InvalidSpecError(UserError):
    """The object says something that cannot be meant; every problem at once, each with its path."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class UnknownArchitectureError(UserError):
    """A model class whose memory we cannot compute; never approximated silently."""

    reason = "UnknownArchitecture"


class UnknownEngineError(UserError):
    """An engine version outside the tables."""

    reason = "InvalidSpec"


class ModelNotFoundError(UserError):
    """The repository, revision or file does not exist."""

    reason = "ModelNotFound"


class ModelHiddenError(ModelNotFoundError):
    """The hub knows no such repository, or hides it from whoever may not see it."""


class ModelUnreadableError(ModelNotFoundError):
    """The files are there and make no sense: cut off, no JSON, an index that names others."""

    reason = "ModelUnreadable"


class TokenRequiredError(UserError):
    """The repository is gated or private and there is no token, or one without access."""

    reason = "TokenRequired"


class TokenRefusedError(TokenRequiredError):
    """There is a token, and the hub refuses it or gives it no access."""


class HubUnavailableError(UserError):
    """The hub does not answer now; asked again by itself."""

    reason = "HubUnavailable"


class InspectingError(UserError):
    """No mistake: a Job in the deployment's namespace reads the model, and will have an answer."""

    reason = "Inspecting"


class InspectionFailedError(UserError):
    """The Job that reads a model could not: out of time or memory, no node, no image."""

    reason = "InspectionFailed"
