"""The table as data: which sides stand side by side, what they get, and what is to be reached."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple

from loadtests.architectures import New
from loadtests.engine.client import CLOSE
from loadtests.old import Old
from loadtests.speed import loads, seeds
from loadtests.speed.loads import Load
from loadtests.speed.peers import Recorder, Traccar
from loadtests.speed.sides import (
    DATABASE,
    EVERYTHING,
    GATEWAY,
    SERVICES,
    Side,
    boxed,
    side,
)
from loadtests.speed.turns import Figure, Turn, with_what_is_left
from loadtests.stack import Stack

OLD, INDEXED, NEW, RAW = "old", "old, indexed", "new", "insert_many"
SYNCED, UNSYNCED = "OwnTracks, synced", "OwnTracks"
TRACCAR_SYNCED, TRACCAR = "Traccar, synced", "Traccar"
PEERS = (SYNCED, UNSYNCED, TRACCAR_SYNCED, TRACCAR)
BATCH = 500
COMPILE_SECONDS = 15.0
FEW, SOME, CROWD = "14 people", "5,000 people", "50,000 people"
SMALL = 10_000
WITHOUT_PAGES = "no page"

# How a side is started; a name: it is another load of that side, which stands before it.
Start = Callable[[], AbstractContextManager[Side]] | str


class Case(NamedTuple):
    """One load, which sides get it, and the figures of it."""

    name: str
    load: Load
    figures: tuple[Figure, ...]
    sides: tuple[str, ...]
    warm_up: bool = True  # the same for a second before
    restarted: bool = False  # the services have just started
    cores: float = 0.0  # of everything in the box
    loads: Mapping[str, Load] = {}  # of sides that get another one


class Section(NamedTuple):
    """Sides that stand side by side, and their cases."""

    title: str
    sides: Mapping[str, Start]
    cases: tuple[Case, ...]


def sections(stored: int) -> list[Section]:
    """Return the whole table; `stored` detections fill the database of the last but one."""
    first = [_through_the_gateway(), _one_box(), _sharded(), _many_people()]
    return [*first, _much_stored(stored), _pages()]


def _rate(least: float = -math.inf, base: str = OLD, per_request: int = 1) -> Figure:
    """Return the rate of what is right, which is to be so many times the base's."""

    def per_second(turn: Turn) -> float:
        figures = turn.of()
        done = figures.requests - figures.wrong
        return figures.rate * done / figures.requests * per_request if figures.requests else 0.0

    return Figure("a second", per_second, at_least=least, base=base, is_rate=base != RAW)


def _time(
    name: str, of: Callable[[Turn], float], most: float = math.inf, base: str = OLD
) -> Figure:
    return Figure(f"{name}, ms", of, at_most=most, base=base, digits=1)


def _p50(turn: Turn) -> float:
    return turn.of().p50


def _p99(turn: Turn) -> float:
    return turn.of().p99


def _cpu(name: str, part: str, per_request: int = 1) -> Figure:
    return Figure(f"{name}, CPU µs each", partial(Turn.cpu_us, part=part, per_request=per_request))


def _minute(most: float) -> Figure:
    return Figure("CPU s a minute", lambda turn: 60 * turn.cores(), at_most=most, digits=2)


def _parts(base: str = OLD, most: float = math.inf) -> tuple[Figure, ...]:
    """Return the CPU of all, as on one vCPU only the sum counts, and of each kind of part."""
    everything = Figure("all parts, CPU µs each", Turn.cpu_us, at_most=most, base=base)
    whole = Figure("the same and what is left to do", with_what_is_left, base=base)
    named = (("services", SERVICES), ("gateway", GATEWAY), ("mongod", DATABASE))
    return (everything, whole, *(_cpu(name, part) for name, part in named))


def _through_the_gateway() -> Section:
    both, three = (OLD, NEW), (OLD, INDEXED, NEW)
    paced = (
        Case(
            f"{rate} inserts a second",
            loads.paced(rate),
            (_time("p50", _p50, 0.9), _time("p99", _p99, 1.0), *_parts(most=most)),
            both,
        )
        for rate, most in ((35, 0.55), (63, math.inf))
    )
    after = Figure("p99, ms", _p99, at_most=12, digits=1)
    light = (
        Case(
            "3.5 inserts a second",
            loads.little,
            (*_parts(most=0.7), _time("p50", _p50)),
            both,
            warm_up=False,
        ),
        Case("idle", loads.nothing, (_minute(0.35),), both, warm_up=False),
        Case(
            "35 a second after 100,000 in batches",
            loads.after_batches(BATCH, 100_000),
            (after,),
            (NEW,),
            warm_up=False,
        ),
    )
    closed = (
        Case(f"inserts, {n} connections", loads.inserts(n), (_rate(least), *_parts()), both)
        for n, least in ((1, 2.3), (8, 2.1), (32, 12), (128, 16))
    )
    direct = Figure("service, CPU µs each", partial(Turn.cpu_us, part=SERVICES), at_most=130)
    # Without the index the old one reads everybody's detections: what counts is that with it.
    quiet, live = (_rate(1, INDEXED), _rate()), (_rate(20, INDEXED), _rate(), *_parts(INDEXED))
    many = (_rate(1, INDEXED), _rate(), *_parts(INDEXED))
    histories = (
        Case("a history of 3,000, nobody writes", loads.quiet_histories, quiet, three),
        Case("the same, written to", loads.live_histories, live, three),
        Case("histories of 600 of 200 people, written to", loads.many_histories, many, three),
    )
    cold = Figure(
        "services, CPU ms each", lambda turn: turn.cpu_us(SERVICES) / 1000, at_most=60, digits=1
    )
    return Section(
        "Through the gateway: two services of 0.3 CPU and 64 MiB; the old one waits for the disk",
        {
            OLD: partial(_seeded, partial(Old, durable=True), seeds.OF_THE_TABLE),
            INDEXED: partial(_seeded, partial(Old, durable=True, indexed=True), seeds.OF_THE_TABLE),
            NEW: partial(_seeded, New, seeds.OF_THE_TABLE),
            RAW: NEW,
        },
        (
            *light,
            *paced,
            *closed,
            Case(
                "inserts, 32 new connections", loads.inserts(32, CLOSE), (_rate(8), *_parts()), both
            ),
            Case(
                "inserts, 32 connections, one service direct",
                loads.direct_inserts(32),
                (direct,),
                (NEW,),
            ),
            Case(
                f"batches of {BATCH}, 4 senders; insert_many beside mongod",
                loads.batches(BATCH),
                (
                    _rate(0.8, RAW, BATCH),
                    _cpu("services", SERVICES, BATCH),
                    _cpu("mongod", DATABASE, BATCH),
                ),
                (NEW, RAW),
                loads={RAW: loads.raw_batches(BATCH)},
            ),
            *histories,
            Case(
                "four histories of 30,000 after a start",
                loads.cold_histories,
                (cold,),
                three,
                warm_up=False,
                restarted=True,
            ),
            Case(
                "14.3/s of histories of 30,000 after a start",
                loads.after_a_start,
                (
                    Figure(
                        "p99 of the first 10 s, ms", lambda turn: turn.of("first").p99, at_most=1000
                    ),
                    Figure(
                        "p99 of the next 10 s, ms", lambda turn: turn.of("warm").p99, at_most=20
                    ),
                ),
                (NEW,),
                warm_up=False,
                restarted=True,
            ),
        ),
    )


def _one_box() -> Section:
    all_sides, both, peers = (OLD, NEW, *PEERS), (OLD, NEW), (NEW, *PEERS)
    cases = [
        Case(
            "35 inserts a second, 1.0 CPU",
            loads.paced(35),
            (Figure("CPU µs each", Turn.cpu_us, at_most=2500),),
            all_sides,
            cores=1.0,
        ),
        Case(
            "idle",
            loads.nothing,
            (_minute(0.5),),
            all_sides,
            warm_up=False,
            cores=1.0,
        ),
    ]
    for cores, least, histories in ((1.0, 10.0, 15.0), (0.5, 4.1, 15.0), (0.2, 3.9, 10.0)):
        cases += [
            Case(
                f"inserts, 32 connections, {cores} CPU",
                loads.inserts(32),
                (_rate(least),),
                both,
                cores=cores,
            ),
            Case(
                f"a history of 3,000, written to, {cores} CPU",
                loads.live_histories,
                (_rate(histories, INDEXED),),
                (INDEXED, NEW),
                cores=cores,
            ),
        ]
    least_by_phones = {1: 1.0, 8: 2.0, 32: 4.0}
    for connections, least in least_by_phones.items():
        figures = _rate(least, SYNCED), Figure("p50, ms", _p50, digits=1)
        cases.append(
            Case(
                f"inserts, {connections} connections of a person each, 0.6 CPU",
                loads.phones(connections),
                figures,
                peers,
                cores=0.6,
            )
        )
    cases.append(
        Case(
            "a history of 3,000, written to, 0.6 CPU",
            loads.live_histories,
            (_rate(40, SYNCED),),
            peers,
            cores=0.6,
        )
    )
    free, indexed = partial(Old, limited=False), {"durable": True, "indexed": True}
    people = (seeds.SHORT_STAFF, *range(loads.FIRST, loads.FIRST + max(least_by_phones)))
    traccar = partial(Traccar, people)
    return Section(
        "One box: all processes of a side share so much CPU",
        {
            OLD: partial(_seeded, partial(free, durable=True), seeds.SHORT_ONE, boxed),
            INDEXED: partial(_seeded, partial(free, **indexed), seeds.SHORT_ONE, boxed),
            NEW: partial(_seeded, partial(New, limited=False), seeds.SHORT_ONE, boxed),
            SYNCED: partial(_peer, Recorder, durable=True),
            UNSYNCED: partial(_peer, Recorder, durable=False),
            TRACCAR_SYNCED: partial(_peer, traccar, is_compiled=False, durable=True),
            TRACCAR: partial(_peer, traccar, is_compiled=False, durable=False),
        },
        tuple(cases),
    )


def _sharded() -> Section:
    rates = (
        Case(f"inserts, {n} connections", loads.inserts(n), (_rate(), *_parts()), (OLD, NEW))
        for n in (1, 32)
    )
    old = partial(Old, durable=True, shards=0)
    starts: dict[str, Callable[[], Stack]] = {
        OLD: old,
        INDEXED: partial(old, indexed=True),
        NEW: partial(New, shards=2),
    }
    return Section(
        "Sharded: two shards, and a router for each service; the old one has one mongod like them",
        {name: partial(_seeded, make, seeds.SHORT_ONE) for name, make in starts.items()},
        (
            Case(
                "35 inserts a second",
                loads.paced(35),
                (_time("p50", _p50), *_parts()),
                (OLD, NEW),
            ),
            *rates,
            Case(
                "a history of 3,000, written to",
                loads.live_histories,
                (_rate(base=INDEXED), *_parts(INDEXED)),
                (INDEXED, NEW),
            ),
        ),
    )


def _many_people() -> Section:
    names = {FEW: 14, SOME: 5_000, CROWD: 50_000}
    cost = [
        Figure(
            f"{part}, CPU µs each",
            partial(Turn.cpu_us, part=part),
            at_most=1.3,
            base=FEW,
            subject=subject,
        )
        for part in (EVERYTHING, DATABASE)
        for subject in (SOME, CROWD)
    ]
    return Section(
        "Many people: each side has heard of so many, who all send",
        {name: partial(_met, people) for name, people in names.items()},
        (
            Case(
                "inserts, 32 connections",
                loads.inserts(32),
                tuple(cost),
                tuple(names),
                loads={name: loads.inserts(32, people=people) for name, people in names.items()},
            ),
        ),
    )


def _much_stored(stored: int) -> Section:
    much = f"{stored:,} stored"
    few = f"{SMALL:,} stored"
    before = seeds.SHORT_ONE | {0: seeds.LONG}

    def times(name: str, of: Callable[[Turn], float]) -> Figure:
        return Figure(name, of, at_most=1.2, base=few, subject=much, digits=1)

    cpu = times("everything, CPU µs each", Turn.cpu_us)
    return Section(
        "Much stored: the same, with so many detections of others in the database",
        {
            name: partial(_seeded, New, before | seeds.others(count), in_turn=True)
            for name, count in ((few, SMALL), (much, stored))
        },
        (
            Case(
                "35 inserts a second", loads.paced(35), (times("p50, ms", _p50), cpu), (few, much)
            ),
            Case("inserts, 32 connections", loads.inserts(32), (cpu,), (few, much)),
            Case(f"batches of {BATCH}", loads.batches(BATCH), (cpu,), (few, much)),
            Case("a history of 3,000, written to", loads.live_histories, (cpu,), (few, much)),
            Case(
                "a history of 30,000 after a start",
                loads.cold_history,
                (cpu,),
                (few, much),
                warm_up=False,
                restarted=True,
            ),
        ),
    )


def _pages() -> Section:
    share = Figure(
        "services, % of a core",
        lambda turn: 100 * turn.cores(SERVICES),
        at_most=2,
        base=WITHOUT_PAGES,
        is_difference=True,
        digits=1,
    )
    case = Case(
        f"{loads.PAGES} open pages beside 3.5 inserts a second",
        loads.pages,
        (share,),
        (WITHOUT_PAGES, NEW),
        loads={WITHOUT_PAGES: loads.few},
    )
    sides: Mapping[str, Start] = {NEW: partial(_seeded, New, seeds.SHORT_ONE), WITHOUT_PAGES: NEW}
    return Section("Open pages", sides, (case,))


@contextmanager
def _seeded(
    make: Callable[[], Stack],
    counts: Mapping[int, int],
    start: Callable[[Stack], AbstractContextManager[Side]] = side,
    *,
    in_turn: bool = False,
) -> Iterator[Side]:
    with start(make()) as started:
        seeds.store(started, counts, in_turn=in_turn)
        yield started


@contextmanager
def _peer(
    peer: Callable[..., Recorder | Traccar], *, durable: bool, is_compiled: bool = True
) -> Iterator[Side]:
    stack = peer(durable=durable, limited=False)
    with boxed(stack, stack.dialect) as started:
        seeds.publish(started, seeds.SHORT_STAFF, seeds.SHORT)
        if not is_compiled:  # Java compiles what runs often, which is not to be measured
            for load in (loads.phones(8), loads.live_histories):
                load(started, COMPILE_SECONDS)
        yield started


@contextmanager
def _met(people: int) -> Iterator[Side]:
    with side(New()) as started:
        seeds.meet(started, loads.FIRST, people)
        yield started
