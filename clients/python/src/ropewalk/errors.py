"""What can go wrong: one exception per status of the protocol."""

from __future__ import annotations


class RopewalkError(Exception):
    """A command was refused, or failed.

    status      name of the protocol's status code, such as "INVALID_ARGUMENT"
    path        the offending field, such as "rods[3].young_modulus"; "" when no field is to blame
    text        why, in words
    steps_done  simulation steps the command did before it failed
    """

    status = "INTERNAL"

    def __init__(self, text: str, path: str = "", steps_done: int = 0) -> None:
        super().__init__(text, path, steps_done)
        self.text = text
        self.path = path
        self.steps_done = steps_done

    def __str__(self) -> str:
        return ": ".join(part for part in (self.status, self.path, self.text) if part)


class InvalidArgument(RopewalkError):
    """A field is wrong by itself."""

    status = "INVALID_ARGUMENT"


class NotFound(RopewalkError):
    """No such session, object, signal, handle, or a stale id."""

    status = "NOT_FOUND"


class AlreadyExists(RopewalkError):
    """The name is taken."""

    status = "ALREADY_EXISTS"


class FailedPrecondition(RopewalkError):
    """The right command at the wrong moment: state, expected step, dependents, exclusivity."""

    status = "FAILED_PRECONDITION"


class OutOfRange(RopewalkError):
    """A valid number outside what this object has."""

    status = "OUT_OF_RANGE"


class PermissionDenied(RopewalkError):
    """An observer tried to change something."""

    status = "PERMISSION_DENIED"


class Unauthenticated(RopewalkError):
    """The daemon wants another token."""

    status = "UNAUTHENTICATED"


class ResourceExhausted(RopewalkError):
    """A quota or a limit of the daemon."""

    status = "RESOURCE_EXHAUSTED"


class DeadlineExceeded(RopewalkError):
    """The deadline passed; `steps_done` tells how far it got."""

    status = "DEADLINE_EXCEEDED"


class Cancelled(RopewalkError):
    """The command was cancelled; `steps_done` tells how far it got."""

    status = "CANCELLED"


class Faulted(RopewalkError):
    """The simulation failed; the session keeps its last good state."""

    status = "FAULTED"


class Unavailable(RopewalkError):
    """The daemon is not there, or shuts down."""

    status = "UNAVAILABLE"


class DataLoss(RopewalkError):
    """A checksum or a stored file does not match."""

    status = "DATA_LOSS"


class Unimplemented(RopewalkError):
    """In the schema, not served by this daemon."""

    status = "UNIMPLEMENTED"


class Internal(RopewalkError):
    """A bug of the daemon; please report it."""

    status = "INTERNAL"


BY_STATUS: dict[str, type[RopewalkError]] = {kind.status: kind for kind in RopewalkError.__subclasses__()}


def of_status(status: str, text: str, path: str = "", steps_done: int = 0) -> RopewalkError:
    """The exception for a status name; statuses this client does not know become RopewalkError."""
    kind = BY_STATUS.get(status)
    if kind is not None:
        return kind(text, path, steps_done)
    error = RopewalkError(text, path, steps_done)
    error.status = status
    return error
