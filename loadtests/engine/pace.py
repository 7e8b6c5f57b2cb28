"""An open loop: requests are sent at their times, whether or not earlier ones were answered."""

import time
from collections.abc import Callable

import gevent


def wait_until(due: float) -> None:
    """Let others run until a time (monotonic seconds)."""
    gevent.sleep(max(0.0, due - time.monotonic()))


def open_loop(
    count: int, seconds: float, send: Callable[[int, float], object], began: float | None = None
) -> float:
    """Call `send(number, due)` so often, evenly over the seconds; return when all have ended.

    Returns the time at which it began (monotonic seconds). Raises what `send` raises.
    """
    began = time.monotonic() if began is None else began
    sent = []
    for number in range(count):
        due = began + number * seconds / count
        wait_until(due)
        sent.append(gevent.spawn(send, number, due))
    gevent.joinall(sent, raise_error=True)
    return began
