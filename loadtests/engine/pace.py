"""When requests are sent: at their times whatever the responses, or one after the other."""

import time
from collections.abc import Callable

import gevent


def wait_until(due: float) -> None:
    """Let others run until a time (monotonic seconds)."""
    gevent.sleep(max(0.0, due - time.monotonic()))


def open_loop(
    count: int, seconds: float, send: Callable[[int, float], object], began: float | None = None
) -> None:
    """Call `send(number, due)` so often, evenly over the seconds; raises what that raises."""
    began = time.monotonic() if began is None else began
    sent = []
    for number in range(count):
        due = began + number * seconds / count
        wait_until(due)
        sent.append(gevent.spawn(send, number, due))
    gevent.joinall(sent, raise_error=True)


def periodic(seconds: float, due: float, send: Callable[..., object]) -> None:
    """Call `send(due=due)` at a time (monotonic seconds), and again and again after it."""
    while True:
        wait_until(due)
        send(due=due)
        due += seconds


def closed_loop(clients: int, seconds: float, send: Callable[[int], object]) -> int:
    """Keep so many clients busy, each waiting for its responses; return how often they sent."""
    end, sent = time.monotonic() + seconds, [0]

    def client(number: int) -> None:
        while time.monotonic() < end:
            send(number)
            sent[0] += 1

    gevent.joinall([gevent.spawn(client, n) for n in range(clients)], raise_error=True)
    return sent[0]
