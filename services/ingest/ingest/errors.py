"""What can go wrong, in the service's own words; `web.error_responses` answers it over HTTP."""

from typing import NamedTuple, TypeVar

RETRY_AFTER_SECONDS = 2
# What a stranger is told: the scheme, and in words.
AUTHENTICATE = "Bearer"
STRANGER = "needs a valid token, sent as `Authorization: Bearer ...`, or a log-in"


Error = TypeVar("Error", bound=BaseException)


def without_frames(error: Error) -> Error:
    """Return an error that is to be raised elsewhere, and let go of the frames that it came from.

    They hold all that was worked with, and often the error: until the collector comes, which is
    throttle, each such error would keep its request.
    """
    one: BaseException | None = error
    while one:
        one.__traceback__ = None
        one = one.__cause__ or one.__context__
    return error


class Fault(NamedTuple):
    """What is wrong with a request: which parameter, and why. It is kept where no error may be."""

    parameter: str
    reason: str


class ParameterError(ValueError):
    """A request parameter is missing or bad: which one, and why."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter = parameter
        self.reason = reason

    @property
    def fault(self) -> Fault:
        """Return the same as a value."""
        return Fault(self.parameter, self.reason)


class BodyTooLarge(Exception):
    """A request's body is over the limit; nothing of it was used."""


class StoreUnavailable(Exception):
    """The database did not confirm an operation: nothing may be promised to the client."""


class CursorExpired(Exception):
    """The changes after a cursor are not all kept any more."""


class Unauthenticated(Exception):
    """Nobody knows who makes this request, and it needs to be known."""


class Forbidden(Exception):
    """Who makes this request is known, and may not do this."""


class Busy(Exception):
    """Too many want the same costly thing at once; nothing was done."""

    def __init__(
        self, why: str = "too many log in at once", wait_seconds: int = RETRY_AFTER_SECONDS
    ) -> None:
        super().__init__(why)
        self.wait_seconds = wait_seconds


class LogInRefused(Exception):
    """A log-in by a provider that led to none: why, and whose where the provider told."""

    def __init__(self, why: str, name: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.name = name


class TooManyAttempts(Exception):
    """Somebody failed too often; nothing was tried."""

    def __init__(self, wait_seconds: int) -> None:
        super().__init__(f"too many failed attempts: wait {wait_seconds} s")
        self.wait_seconds = wait_seconds
