"""The cases as data."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from loadtests.benchmark.loads import Load, batches, cold, each_once, inserts, live, mixed, paced
from loadtests.engine.client import GZIP, KEEP_ALIVE

SINGLES = "insert, 32 connections"
PEAK_MIB = 58  # at most, in any case
SLOWER = 0.95  # of another checkout's rate, or its CPU: below it is slower


class Case(NamedTuple):
    """One load, and what the new service is to reach."""

    name: str
    load: Load
    each: int = 1  # detections a request
    before: Load | None = None  # not measured: a service runs for weeks, not for seconds
    services: int = 1
    paced: bool = False  # at a fixed rate: only what it costs can be compared
    least: float = 0.0  # times as fast as the old one, by rate or by CPU
    p99_limit_ms: float = math.inf
    old_case: str | None = None  # what the old service is measured with; "": it is not


def _inserts(connections: int, least: float = 0.0) -> Case:
    load = inserts(connections)
    return Case(f"insert, {connections} connections", load, before=load, least=least)


def _batches(size: int, least: float = 0.0) -> Case:
    load, name = batches(size), f"batches of {size}, against single inserts at 32"
    return Case(name, load, size, before=load, least=least, old_case=SINGLES)


def _paced(name: str, headers: Mapping[str, str]) -> Case:
    load, before = paced(headers), each_once(headers)
    return Case(name, load, 1, before, services=2, paced=True, p99_limit_ms=500, old_case="")


CASES = (
    *(_inserts(connections, least) for connections, least in ((1, 0), (8, 0), (32, 8), (128, 0))),
    *(_batches(size, least) for size, least in ((50, 0), (500, 100))),
    Case("live history of 3,000", live(KEEP_ALIVE), least=10),
    Case("the same, gzip taken", live(GZIP)),
    Case("mixed, 8 phones and 4 readers", mixed),
    Case("four cold histories of 30,000 at once", cold),
    _paced("14.3/s of 30,000, two services", KEEP_ALIVE),
    _paced("the same 14.3/s, gzip taken", GZIP),
)
