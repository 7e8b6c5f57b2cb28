"""What a line of a service's log looks like, and what it does not tell."""

import logging
import traceback

# So begins each place where an exception passed, in Python's own words as in these.
FRAME = '  File "'
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class NamelessFormatter(logging.Formatter):
    """Tells where an exception was raised and of which kind it is, without its words.

    They may quote what a client sent: an id of a person, or a token. What the system or SQLite says
    of itself is told.
    """

    def formatException(self, ei: object) -> str:  # noqa: N802  # its name there
        """Return the frames and kinds of an exception and of its causes, the first one first."""
        told: list[str] = []
        error = ei[1] if isinstance(ei, tuple) else None
        while error:
            says = getattr(error, "strerror", None) or getattr(error, "sqlite_errorname", "")
            frames = "".join(traceback.format_tb(error.__traceback__))
            told.append(
                f"{frames}{type(error).__module__}.{type(error).__qualname__} {says}".rstrip()
            )
            follows = None if error.__suppress_context__ else error.__context__
            error = error.__cause__ or follows
        return "\n".join(reversed(told))


def set_up() -> None:
    """Write such lines to the standard error from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(NamelessFormatter(FORMAT))
    logging.basicConfig(handlers=[handler])
