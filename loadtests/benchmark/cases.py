"""The cases as data."""

import math
from functools import partial
from typing import NamedTuple

from loadtests.benchmark import loads
from loadtests.benchmark.loads import Headers, Load
from loadtests.engine.client import GZIP, KEEP_ALIVE

PEAK_MIB = 58  # at most, in any case
SLOWER = 0.95  # of another checkout's rate, or its CPU: below it is slower


class Case(NamedTuple):
    """One load, and what the new service is to reach."""

    name: str
    load: Load
    per_request: int = 1  # detections a request
    before: Load | None = None  # not measured: a service runs for weeks, not for seconds
    services: int = 1
    paced: bool = False  # at a fixed rate: only what it costs can be compared, and not with the old
    least: float = 0.0  # times as fast as the old one, by rate or by CPU
    p99_limit_ms: float = math.inf
    old_load: Load | None = None  # what the old service gets instead, a detection a request


def _inserts(connections: int, least: float = 0.0) -> Case:
    load = partial(loads.inserts, connections=connections)
    return Case(f"insert, {connections} connections", load, before=load, least=least)


def _batches(size: int, least: float = 0.0) -> Case:
    load, old_load = loads.batches(size), partial(loads.inserts, connections=32)
    name = f"batches of {size}, against single inserts at 32"
    return Case(name, load, size, before=load, least=least, old_load=old_load)


def _paced(name: str, headers: Headers) -> Case:
    load, before = partial(loads.paced, headers=headers), partial(loads.each_once, headers=headers)
    return Case(name, load, 1, before, services=2, paced=True, p99_limit_ms=500)


CASES = (
    *(_inserts(connections, least) for connections, least in ((1, 0), (8, 0), (32, 8), (128, 0))),
    *(_batches(size, least) for size, least in ((50, 0), (500, 100))),
    Case("live history of 3,000", partial(loads.live, headers=KEEP_ALIVE), least=10),
    Case("the same, gzip taken", partial(loads.live, headers=GZIP)),
    Case("mixed, 8 phones and 4 readers", loads.mixed),
    Case("four cold histories of 30,000 at once", loads.cold),
    _paced("14.3/s of 30,000, two services", KEEP_ALIVE),
    _paced("the same 14.3/s, gzip taken", GZIP),
)
