"""Wait for a condition, never for a fixed time."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PAUSE_SECONDS = 0.05


def eventually(
    condition: Callable[[], Value], seconds: float = 30, *, pause_seconds: float = PAUSE_SECONDS
) -> Value:
    """Return the first true value of a condition. Raises TimeoutError when there is none in time.

    What the condition raises ends the wait.
    """
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s")
        time.sleep(pause_seconds)
    return result
