"""What can go wrong, in the service's own words; `web.error_responses` answers it over HTTP."""

RETRY_AFTER_SECONDS = 2
# What a stranger is told: the scheme, and in words.
AUTHENTICATE = "Bearer"
STRANGER = "needs a valid token, sent as `Authorization: Bearer ...`, or a log-in"


class ParameterError(ValueError):
    """A request parameter is missing or bad: which one, and why."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter = parameter
        self.reason = reason


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


class LogInRefused(Exception):
    """A log-in by a provider that led to none: why, and whose where the provider told."""

    def __init__(self, why: str, who: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.who = who


class TooManyAttempts(Exception):
    """Somebody failed too often; nothing was tried."""

    def __init__(self, wait_seconds: int) -> None:
        super().__init__(f"too many failed attempts: wait {wait_seconds} s")
        self.wait_seconds = wait_seconds
