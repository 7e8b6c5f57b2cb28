"""The source system's load plans as data: what is sent, how often, and what is stored before.

JMeter's "N threads with a ramp-up of 60 s, one request each" is an open-loop arrival rate of N/60 a
second: a slow answer keeps no later request back.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

RAMP_SECONDS = 60.0
BEACON = {"beacon_address": "C2A628384B08", "rssi": -20}
ALL_TIME = {"start_time": 0, "end_time": 4102444800}
WRITES = (2100, 2520, 2940, 3360, 3780)
GROWTH = 1.2  # "+20 % until it breaks"
SWEEP_GROWTH = 1.6
FIVE = (0, 1, 2, 3, 4)
OTHER_FIVE = (0, 11, 12, 30, 40)  # the source's second choice, which its shards liked better
FIFTY = tuple(range(50))
MOCK_HACS = (0, 2)
ALL_STAFF = tuple(range(14))


class Step(NamedTuple):
    """One row of a plan's table: `threads` requests in 60 s."""

    name: str
    kind: str  # insert, batch or extract
    threads: int
    staff: tuple[int, ...] = (0,)  # who sends, evenly; or who is read
    fill: tuple[tuple[int, int], ...] = ()  # staff id and how many documents to add before it
    hacs: tuple[int, ...] = ()  # whose histories the mock HACS polls every 10 s
    pages: int = 0  # open monitoring pages
    batch: int = 1  # detections a request


class Plan(NamedTuple):
    """A plan of the source's playbook, and the requirement that it checks."""

    name: str
    text: str
    mean_limit_ms: float  # "it broke" when the mean is above, or anything failed
    steps: tuple[Step, ...]
    growth: float = GROWTH  # of the arrival rate after the last step, when run until it breaks

    @property
    def writes(self) -> bool:
        """Tell whether the plan stores detections."""
        return self.steps[0].kind != "extract"


def _writes(threads: tuple[int, ...], staff: tuple[int, ...] = (0,)) -> tuple[Step, ...]:
    return tuple(Step(str(n), "insert", n, staff, hacs=MOCK_HACS, pages=1) for n in threads)


def _reads(threads: tuple[int, ...], documents: int) -> Iterator[Step]:
    for number, count in enumerate(threads):
        fill = ((0, documents),) if number == 0 else ()
        yield Step(str(count), "extract", count, fill=fill, pages=1)


def _growing(totals: range, staff: tuple[int, ...]) -> Iterator[Step]:
    """Yield a step for each total; its 600 new documents belong to the next of `staff`."""
    for number, total in enumerate(totals):
        owner = staff[number % len(staff)]
        yield Step(str(total), "extract", 860, fill=((owner, 600),))


_PASSES = (*_growing(range(600, 6001, 600), FIVE), *_growing(range(6600, 9001, 600), OTHER_FIVE))

_HISTORY = 3000
_SWEEPS = (
    # Not of the source: where each architecture ends, on a machine faster than the source's.
    Plan("SWEEP-INSERT", "inserts, 60 % more each time", 1000, _writes((2100,)), SWEEP_GROWTH),
    Plan(
        "SWEEP-EXTRACT",
        f"extracts of {_HISTORY} documents, 60 % more each time",
        1000,
        tuple(_reads((860,), _HISTORY)),
        SWEEP_GROWTH,
    ),
)

_CAPACITY = (
    Plan("CAP-INSERT", "inserts", 1000, (Step("start", "insert", 6000, FIFTY),)),
    *(
        Plan(
            f"CAP-BATCH-{size}",
            f"batches of {size}",
            1000,
            (Step("start", "batch", 600, FIFTY, batch=size),),
        )
        for size in (50, 500)
    ),
    *(
        Plan(
            f"CAP-EXTRACT-{count}",
            f"extracts of {count}",
            1000,
            (Step("start", "extract", 1800, fill=((0, count),)),),
        )
        for count in (600, 3000, 9000, 30000)
    ),
)

PLANS = {
    plan.name: plan
    for plan in (
        Plan(
            "PERF-TP-1", "inserts at the expected peak and ten times it", 1000, _writes((210, 2100))
        ),
        Plan(
            "PERF-TP-2",
            "extracts of 2310 documents at the expected peak and ten times it",
            6000,
            tuple(_reads((86, 860), 2310)),
        ),
        Plan("PERF-RT-1", "inserts, 20 % more each time", 1000, _writes(WRITES)),
        Plan("PERF-RT-1-1", "the same, spread over five staff", 1000, _writes(WRITES, FIVE)),
        Plan("PERF-RT-1-1b", "the same, over the other five", 1000, _writes(WRITES, OTHER_FIVE)),
        Plan(
            "PERF-RT-2",
            "extracts of a growing history",
            6000,
            tuple(_growing(range(600, 3001, 600), (0,))),
        ),
        Plan("PERF-RT-2-1", "the same, while the documents of others grow", 6000, _PASSES),
        *_SWEEPS,
        *_CAPACITY,
    )
}


def until_it_breaks(steps: Sequence[Step], growth: float = GROWTH) -> Iterator[Step]:
    """Yield the steps, then the last one with so much more threads each time, for ever."""
    yield from steps
    step = steps[-1]
    while True:
        threads = round(step.threads * growth)
        step = step._replace(threads=threads, name=str(threads), fill=())
        yield step


def search(start: int, *, closeness: float = 1.1) -> Generator[int, bool, int]:
    """Yield numbers of threads and take whether each was served; return the highest that was.

    Doubles or halves until the limit lies between two, then halves their distance.
    """
    good, bad, threads = 0, 0, start
    while True:
        if (yield threads):
            good = threads
        else:
            bad = threads
        if not good and threads <= 1:
            return 0
        if good and bad and bad <= good * closeness:
            return good
        beyond = good * 2 if good else bad // 2
        threads = (good + bad) // 2 if good and bad else beyond
        if threads == good:
            return good


def requests(step: Step, ramp_seconds: float) -> int:
    """Return how many requests arrive in a ramp of that length, at the plan's rate."""
    return max(1, round(step.threads * ramp_seconds / RAMP_SECONDS))
