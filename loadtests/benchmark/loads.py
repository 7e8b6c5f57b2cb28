"""The kinds of load that a case puts on services, given by their ports."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from loadtests.benchmark import messages
from loadtests.benchmark.messages import STAFF
from loadtests.figures import Row
from loadtests.lean import Client, Exchange, Make, Response, closed_loop, open_loop

LONG, SHORT = 30_000, 3_000  # detections of a history
SHORT_STAFF = 100  # who has the short one; 0 to 13 have long ones
READERS, PHONES = 4, 8
WRITES_PER_SECOND = 5  # to the history that is read
EXTRACTS_PER_SECOND = 14.3  # PERF-TP-2


class Target(NamedTuple):
    """What gets the load, and for how many seconds."""

    ports: list[int]
    seconds: float
    stored: Callable[[int], int]  # how many detections of somebody are stored


Load = Callable[[Target], Coroutine[Any, Any, list[Row]]]


def clients(number: int, make: Make) -> Load:
    """Return so many clients that send one request after the other."""

    async def load(target: Target) -> list[Row]:
        return await closed_loop(target.ports[0], number, target.seconds, make)

    return load


def live(headers: bytes) -> Load:
    """Return four readers of one history of 3,000, to which detections come all the time."""

    async def load(target: Target) -> list[Row]:
        history = _History(target, headers)
        writing = asyncio.create_task(history.write())
        rows = await closed_loop(target.ports[0], READERS, target.seconds, history.read)
        await writing
        return rows

    return load


async def mixed(target: Target) -> list[Row]:
    """Eight phones and four readers of the short history at once."""
    port, seconds = target.ports[0], target.seconds
    history = _History(target)
    both = await asyncio.gather(
        closed_loop(port, PHONES, seconds, lambda n: messages.insert_of_anybody(n, "phones")),
        closed_loop(port, READERS, seconds, history.read),
    )
    return [*both[0], *(row._replace(name="readers") for row in both[1])]


async def cold(target: Target) -> list[Row]:
    """Four long histories at once from a service that has just started."""
    return await open_loop(target.ports, 4, 0, long_history(b""))


def paced(headers: bytes) -> Load:
    """Return long histories at a fixed rate, for twice the seconds, from each service in turn."""

    async def load(target: Target) -> list[Row]:
        seconds = 2 * target.seconds
        count = max(1, int(EXTRACTS_PER_SECOND * seconds))
        return await open_loop(target.ports, count, seconds, long_history(headers))

    return load


def each_once(headers: bytes) -> Load:
    """Return long histories until each service has seen each of them."""

    async def load(target: Target) -> list[Row]:
        make = long_history(headers)
        rows = []
        for port in target.ports:
            client = Client(port)
            rows += [await client.exchange(make(staff), 0) for staff in range(STAFF)]
            client.close()
        return rows

    return load


def long_history(headers: bytes) -> Make:
    """Return what makes the request for the next long history."""

    def make(number: int) -> Exchange:
        request = messages.extract(number % STAFF, headers)
        return Exchange(request, lambda response: messages.documents(response) == LONG)

    return make


class _History:
    """A history that is written to while it is read: every response must be exact."""

    def __init__(self, target: Target, headers: bytes = b"") -> None:
        self._target = target
        self._request = messages.extract(SHORT_STAFF, headers)
        self._sent = self._acknowledged = target.stored(SHORT_STAFF)

    def read(self, _: int) -> Exchange:
        """Read all that was acknowledged before, and nothing that nobody sent."""
        least = self._acknowledged

        def is_right(response: Response) -> bool:
            return least <= messages.documents(response) <= self._sent

        return Exchange(self._request, is_right)

    async def write(self) -> None:
        """Write at a steady rate, each time from a new connection."""
        until = time.monotonic() + self._target.seconds
        while time.monotonic() < until:
            client = Client(self._target.ports[0])
            self._sent += 1
            row = await client.exchange(messages.insert(SHORT_STAFF), 0)
            self._acknowledged += row.status == 200
            client.close()
            await asyncio.sleep(1 / WRITES_PER_SECOND)
