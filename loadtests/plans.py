"""The source system's load plans as data: what is sent, how often, and what is stored before.

JMeter's "N threads with a ramp-up of 60 s, one request each" is an open-loop arrival rate of N/60 a
second: a slow response keeps no later request back.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

RAMP_SECONDS = 60.0
MAC = "C2A628384B08"  # a beacon of the directory
BEACON = {"beacon_address": MAC, "rssi": -20}
ALL_TIME = {"start_time": 0, "end_time": 4102444800}
WRITES = (2100, 2520, 2940, 3360, 3780)
GROWTH = 1.2  # "+20 % until it breaks"
SWEEP_GROWTH = 1.6
SWEEP, CAPACITY = "SWEEP-", "CAP-"  # how the names of plans begin that are not the source's
SPLIT = "SPLIT-"  # and of those of one combined service against separated ones
FIVE = (0, 1, 2, 3, 4)
OTHER_FIVE = (0, 11, 12, 30, 40)  # the source's second choice, which its shards liked better
FIFTY = tuple(range(50))
PAGE_READS = (2, 20, 210, 860, 2100)  # from one page every 30 s on
PAGE = "opened"  # reads of the page that are the load itself, not a companion
MOCK_HACS = (0, 2)


class Step(NamedTuple):
    """One row of a plan's table: `threads` requests in 60 s."""

    name: str
    kind: str  # insert, batch, extract or PAGE
    threads: int
    staff: tuple[int, ...] = (0,)  # who sends, evenly; or who is read
    preload: tuple[tuple[int, int], ...] = ()  # staff id and how many documents to add before it
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
        return self.steps[0].kind not in ("extract", PAGE)

    @property
    def is_sweep(self) -> bool:
        """Tell whether the plan is run until it breaks."""
        return self.name.startswith(SWEEP)

    @property
    def is_split(self) -> bool:
        """Tell whether the plan compares one combined service with separated ones."""
        return self.name.startswith(SPLIT)

    @property
    def is_the_sources(self) -> bool:
        """Tell whether the source had it, too."""
        return not self.name.startswith((SWEEP, CAPACITY))


def _writes(threads: Sequence[int], staff: tuple[int, ...] = (0,)) -> tuple[Step, ...]:
    return tuple(Step(str(n), "insert", n, staff, hacs=MOCK_HACS, pages=1) for n in threads)


def _writes_in_rounds(staff: tuple[int, ...]) -> tuple[Step, ...]:
    """Return the steps of WRITES, each of another one of `staff`."""
    steps = zip(_writes(WRITES), staff, strict=True)
    return tuple(step._replace(staff=(staff,)) for step, staff in steps)


def _reads(threads: Sequence[int], documents: int) -> tuple[Step, ...]:
    first, *others = (Step(str(n), "extract", n, pages=1) for n in threads)
    return (first._replace(preload=((0, documents),)), *others)


def _growing(totals: range, staff: tuple[int, ...]) -> tuple[Step, ...]:
    """Return a step for each total; its 600 new documents belong to the next of `staff`."""
    return tuple(
        Step(str(total), "extract", 860, preload=((staff[number % len(staff)], 600),), pages=1)
        for number, total in enumerate(totals)
    )


def _with_pages(steps: Sequence[Step], pages: int) -> tuple[Step, ...]:
    return tuple(step._replace(pages=pages, hacs=MOCK_HACS) for step in steps)


def _split(pages: int) -> tuple[Plan, Plan]:
    """Return the source's comparisons of the separation, of writes and of reads."""
    open_pages = f"{pages} open page{'s' * (pages > 1)}"
    writes, reads = _with_pages(_ROUNDS, pages), _with_pages(_PASSES[:5], pages)
    return (
        Plan(f"{SPLIT}WRITES-{pages}", f"inserts with {open_pages}", 1000, writes),
        Plan(f"{SPLIT}READS-{pages}", f"extracts with {open_pages}", 6000, reads),
    )


def _capacity(name: str, text: str, step: Step) -> Plan:
    return Plan(CAPACITY + name, text, 1000, (step,))


def _capacity_of_batches(size: int) -> Plan:
    step = Step("start", "batch", 600, FIFTY, batch=size)
    return _capacity(f"BATCH-{size}", f"batches of {size}", step)


def _capacity_of_extracts(documents: int) -> Plan:
    step = Step("start", "extract", 1800, preload=((0, documents),))
    return _capacity(f"EXTRACT-{documents}", f"extracts of {documents}", step)


_AT_PEAK = "at the expected peak and ten times it"
_PASSES = _growing(range(600, 9001, 600), FIVE)
_OTHER_PASSES = _growing(range(600, 9001, 600), OTHER_FIVE)
_END = Step("840", "extract", 840, preload=((0, 300),), pages=1)
# What the last 15 minutes have at the peak, for each of 14 people a detection every 4 s.
_QUARTER = tuple((staff, 225) for staff in range(14))
_PAGES = tuple(Step(str(n), PAGE, n, pages=1) for n in PAGE_READS)
_PAGES = (_PAGES[0]._replace(preload=_QUARTER), *_PAGES[1:])
_ROUNDS, _OTHER_ROUNDS = _writes_in_rounds(FIVE), _writes_in_rounds(OTHER_FIVE)
_LONG, _SWEPT = "extracts of 3000 documents", "60 % more each time"
_PLANS = (  # the limits of the mean are those of PERF-RT-1 and PERF-RT-2
    Plan("PERF-TP-1", f"inserts {_AT_PEAK}", 1000, _writes((210, 2100))),
    Plan("PERF-TP-1-1", "the same, divided over five staff", 1000, _writes((210, 2100), FIVE)),
    Plan("PERF-TP-2", f"extracts of 2310 documents {_AT_PEAK}", 6000, _reads((86, 860), 2310)),
    Plan("PERF-RT-1", "inserts, 20 % more each time", 1000, _writes(WRITES)),
    Plan("PERF-RT-1-1", "the same, each round by another of five staff", 1000, _ROUNDS),
    Plan("PERF-RT-1-1b", "the same, by the other five", 1000, _OTHER_ROUNDS),
    Plan("PERF-RT-2", "extracts of a growing history", 6000, _growing(range(600, 3001, 600), (0,))),
    Plan("PERF-RT-2-1", "the same, while the documents of others grow", 6000, _PASSES),
    Plan("PERF-RT-2-1b", "all of it again, with the other five", 6000, _OTHER_PASSES),
    Plan("PERF-RT-3", "reads of the page's people: its stress test", 1000, _PAGES),
    *_split(1),
    *_split(10),
    Plan(f"{SPLIT}END", "one server's end: extracts of 300 documents", 6000, (_END,)),
    # Not of the source: where each architecture ends, on a machine faster than the source's.
    Plan("SWEEP-INSERT", f"inserts, {_SWEPT}", 1000, _writes((2100,)), SWEEP_GROWTH),
    Plan("SWEEP-EXTRACT", f"{_LONG}, {_SWEPT}", 1000, _reads((860,), 3000), SWEEP_GROWTH),
    _capacity("INSERT", "inserts", Step("start", "insert", 6000, FIFTY)),
    *map(_capacity_of_batches, (50, 500)),
    *map(_capacity_of_extracts, (600, 3000, 9000, 30000)),
)
PLANS = {plan.name: plan for plan in _PLANS}


def until_it_breaks(steps: Sequence[Step], growth: float = GROWTH) -> Iterator[Step]:
    """Yield the steps, then the last one with so much more threads each time, for ever."""
    yield from steps
    step = steps[-1]
    while True:
        threads = round(step.threads * growth)
        step = step._replace(threads=threads, name=str(threads), preload=())
        yield step


def requests(step: Step, ramp_seconds: float) -> int:
    """Return how many requests arrive in a ramp of that length, at the plan's rate."""
    return max(1, round(step.threads * ramp_seconds / RAMP_SECONDS))


def jmeter_delay(step: Step, slower: float = 1.0) -> float:
    """Return the seconds between two of a step's requests, as JMeter rounds them to whole ms."""
    return math.floor(RAMP_SECONDS * 1000 * slower / step.threads + 0.5) / 1000
