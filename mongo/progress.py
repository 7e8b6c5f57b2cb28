"""How the bootstrap waits and what it says."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

POLL_SECONDS = 0.1


class NotInTimeError(Exception):
    """The cluster did not get where it should by the deadline; the text says what is missing."""


class Progress:
    """Waits for conditions until one common deadline, and tells what was done."""

    def __init__(
        self, say: Callable[[str], None], deadline_seconds: float, alive: Callable[[], None]
    ) -> None:
        self.say = say
        self._deadline_seconds = deadline_seconds
        self._deadline = time.monotonic() + deadline_seconds
        self._alive = alive

    def wait_for(self, what: str, condition: Callable[[], Value | None]) -> Value:
        """Return the first result that is not None; `alive` may raise to end a vain wait."""
        while (result := condition()) is None:
            self._alive()
            if time.monotonic() > self._deadline:
                raise NotInTimeError(f"after {self._deadline_seconds:.0f} s still no {what}")
            time.sleep(POLL_SECONDS)
        return result
