"""The cases as data: a load, what the database holds meanwhile, and what every answer must be."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from loadtests.headroom import backlogs, connections, crowds, hostile, seeds
from loadtests.headroom.answers import Rule
from loadtests.headroom.crowds import Load
from loadtests.headroom.site import HONEST, Site

AT_ONCE_SECONDS = 3.0
SHORT, BUSY = 2.0, "503 busy"  # what a page or a health check may wait
REFUSED = ("200", "400", "413", "422", "429", BUSY)  # what is too much: any answer but a failure
ANY_TIME = 60.0
POLLED_SECONDS = 6.5  # what the gateway gives the pollers: the first reading after a start
BLIND_SECONDS = 10.0  # after a backlog, until somebody is seen
AS_FAST = 0.9  # of the rate of another case

HONEST_RULE = Rule(HONEST, seconds=SHORT)
PAGE_RULES = (Rule("page", seconds=SHORT), Rule("fallback", ("503 open",), SHORT))


class Case(NamedTuple):
    """One load; `rules` say what of its answers must be right."""

    name: str
    load: Load
    rules: tuple[Rule, ...]
    seed: Callable[[Site], AbstractContextManager[None]] | None = None
    as_fast_as: str = ""  # the case whose rate of acknowledged detections it is to reach


def _people(count: int) -> Case:
    rules = tuple(Rule(path, ("200", "304")) for path in crowds.STAFF_NOW)
    seed = partial(seeds.people, count=count)
    return Case(f"/staff and /now of {count:,} people", crowds.people(count), rules, seed)


def _window(rows: int) -> Case:
    seed, rules = partial(seeds.window, rows=rows), (Rule(crowds.WINDOW, seconds=POLLED_SECONDS),)
    return Case(f"{crowds.WINDOW} of {rows:,} rows", crowds.pollers(rows), rules, seed)


def _hostile(name: str, kind: str, load: Load) -> Case:
    return Case(name, load, (HONEST_RULE, Rule(kind, REFUSED, ANY_TIME)))


def _half_requests(count: int) -> Case:
    name = f"{count} half-sent requests to the page"
    return Case(name, connections.half_requests(count), PAGE_RULES)


def _campus(name: str, load: Load, *kinds: str, people: int) -> Case:
    rules = (Rule("insert", seconds=SHORT), Rule("/api/v1/now", seconds=0.5, share=0.99))
    asked = ("page", crowds.WINDOW, *kinds)
    seed = partial(seeds.people, count=people)
    return Case(name, load, (*rules, *(Rule(kind) for kind in asked)), seed)


def _mixed(name: str, people: int) -> Case:
    asked = ("insert", "batch", "history", "long history", "page of 3,000", "page", crowds.WINDOW)
    busy = (Rule("feed", ("200", "429")), Rule("export", REFUSED, 30))
    seed = partial(seeds.campus, count=people)
    return Case(name, crowds.mixed, (*(Rule(kind) for kind in asked), *busy), seed)


def _backlog() -> Case:
    seen = (Rule(backlogs.unseen(path), seconds=BLIND_SECONDS) for path in backlogs.LOOKS)
    rules = (Rule("batch", ("200", "202", "503", BUSY), seconds=ANY_TIME), *seen)
    return Case("a backlog of 20,000 for each second", backlogs.backlog, rules)


STORED = Rule("until stored", seconds=AT_ONCE_SECONDS)
FEW = "inserts at 32 connections"
CASES = (
    Case(FEW, crowds.inserts(32), (Rule("insert"),)),
    Case(
        "inserts at 128 connections",
        crowds.inserts(128),
        (Rule("insert", ("200", BUSY)),),
        as_fast_as=FEW,
    ),
    Case("400 inserts at once", crowds.at_once(400), (STORED, Rule("insert", ("200", BUSY)))),
    Case("100 batches at once", crowds.at_once(100, 50), (STORED, Rule("batch", ("200", BUSY)))),
    *map(_people, (200, 1_000, 5_000, 20_000)),
    *map(_window, (20_000, 57_000, 90_000)),
    Case(
        "100 inserts/s, 5 histories/s of 10,000",
        crowds.long_histories,
        (Rule("insert", seconds=SHORT), Rule("history")),
        seeds.history,
    ),
    _campus("a crowd of 5,000", crowds.campus(100), people=5_000),
    _hostile("imports of 524,000 bad lines", "import", hostile.bad_lines()),
    _hostile("batches of 1 MiB of {}", "batch of {}", hostile.empty_items()),
    _hostile("24 batches of wrong types at once", "batch of wrong types", hostile.wrong_items(24)),
    _hostile("10 forms of 1 MB", "form", hostile.forms(174_000, 10)),
    _hostile("40 forms of 240 kB", "form", hostile.forms(40_000, 40)),
    Case(
        "200 slow readers of an export",
        connections.slow_readers(200),
        (HONEST_RULE, Rule("slow reader", REFUSED, ANY_TIME)),
        seeds.history,
    ),
    *map(_half_requests, (8, 200)),
    Case(
        "16 slow downloads",
        hostile.slow_downloads(16),
        (HONEST_RULE, Rule("/healthz", seconds=SHORT), Rule("batch"), Rule("export", REFUSED, 30)),
        seeds.history,
    ),
    Case(
        "the largest bodies",
        hostile.largest,
        (
            HONEST_RULE,
            *(Rule(kind) for kind in ("batch", "import", "page of 3,000", "history", "feed")),
            Rule("people", seconds=10.0),  # 5,000 are compared, or written, in one transaction
            Rule("form", ("400", "413")),
        ),
        seeds.history,
    ),
    Case("connection churn", connections.churn, (HONEST_RULE, Rule("insert on a new connection"))),
    _backlog(),
    _mixed("345 detections/s of 440 people, all kinds of readers", people=440),
    _campus("soak", crowds.campus(40, 1, 2), "batch", "history", people=200),
)
