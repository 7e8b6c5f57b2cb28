"""What is stored before a side is measured."""

import random
import time
from collections.abc import Mapping

from loadtests import histories
from loadtests.engine import endpoints
from loadtests.engine.client import KEEP_ALIVE, Response
from loadtests.plans import MAC
from loadtests.speed.sides import Side

LONG, LONG_STAFF = 30_000, 14  # detections of each, and whose: 0 to 13
SHORT, SHORT_STAFF = 3_000, 100
MANY, OF_MANY, FIRST_OF_MANY = 200, 600, 1_000
OTHERS, FIRST_OF_OTHERS = 1_000, 10_000_000  # whose detections only fill the database
BATCH = 500
SHORT_ONE = {SHORT_STAFF: SHORT}
OF_THE_TABLE = (
    dict.fromkeys(range(LONG_STAFF), LONG)
    | SHORT_ONE
    | dict.fromkeys(range(FIRST_OF_MANY, FIRST_OF_MANY + MANY), OF_MANY)
)


def store(side: Side, counts: Mapping[int, int], *, in_turn: bool = False) -> None:
    """Have so many detections of each staff member in the side's database."""
    stack = side.stack  # the old one knows no stamps: nothing of it settles
    histories.store(stack.mongodb_uri, counts, in_turn=in_turn, settled=stack.works_later)
    side.stored.update(counts)
    side.sent.update(counts)


def others(count: int) -> dict[int, int]:
    """Return so many detections of people for whom nobody asks."""
    return dict.fromkeys(range(FIRST_OF_OTHERS, FIRST_OF_OTHERS + OTHERS), count // OTHERS)


def publish(side: Side, staff: int, count: int) -> None:
    """Have the side itself store a history, one detection after the other. Raises OSError."""
    while side.stored[staff] < count:
        path, body = side.dialect.insert(staff)
        side.sent[staff] += 1
        _accept(side.gateway.send(path, body, KEEP_ALIVE))
        side.stored[staff] += 1


def meet(side: Side, first: int, people: int) -> None:
    """Have the side hear of so many people, once each, in an order of chance. Raises OSError."""
    staff = random.sample(range(first, first + people), people)
    pieces = [staff[at : at + BATCH] for at in range(0, people, BATCH)]
    for piece in pieces:
        now = int(time.time())
        body = endpoints.batch([endpoints.detection(staff, MAC, now) for staff in piece])
        _accept(side.gateway.send(endpoints.BATCH, body, KEEP_ALIVE))


def _accept(response: Response) -> None:
    if response.status != 200:
        raise OSError(f"a seed was answered {response.status}: {response.body[:120]!r}")
