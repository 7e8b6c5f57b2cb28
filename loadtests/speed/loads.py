"""What is sent to a side. Each load is bounded, and leaves a row of each request."""

import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

import gevent
from bson import ObjectId
from pymongo import MongoClient

from common.schema import DATABASE
from loadtests.engine import endpoints
from loadtests.engine.client import CLOSE, GZIP, KEEP_ALIVE, Api, Response, WrongResponse
from loadtests.engine.pace import closed_loop, open_loop, wait_until
from loadtests.figures import Row
from loadtests.plans import MAC
from loadtests.speed import seeds
from loadtests.speed.sides import Side

PHONES = 14  # the people of the source system, who send unless a load says otherwise
FIRST = 1_000_000  # of those who send
READERS, SENDERS = 4, 4
WRITES_PER_SECOND = 5.0  # to the histories that are read
EXTRACTS_PER_SECOND = 14.3  # PERF-TP-2
FIRST_SECONDS = 10.0  # after a start
PAGES, PAGE_SECONDS, PAGE = 200, 5.0, "/monitoring/api/staff"  # as the page Live asks
LITTLE_PER_SECOND = 3.5  # of fourteen phones
BATCH_STAFF, BACKLOG = 300, 90 * 86_400
RAW = "raw_batches"
BATCHES, BATCHES_SECONDS = "batch", 120.0
OPTIONS = ("unique", "sparse", "partialFilterExpression")  # of an index, that change its work

Load = Callable[[Side, float], object]
Headers = Mapping[str, str]


def inserts(connections: int, headers: Headers = KEEP_ALIVE, people: int = PHONES) -> Load:
    """Return phones of so many people that send one detection after the other."""

    def load(side: Side, seconds: float) -> None:
        closed_loop(connections, seconds, lambda _: _insert(side, headers, people))

    return load


def phones(connections: int) -> Load:
    """Return as many phones, of a person each, that send one detection after the other."""

    def load(side: Side, seconds: float) -> None:
        closed_loop(connections, seconds, lambda number: _insert(side, staff=FIRST + number))

    return load


def direct_inserts(connections: int) -> Load:
    """Return the same to one ingest service, past the gateway."""

    def load(side: Side, seconds: float) -> None:
        closed_loop(connections, seconds, lambda _: _insert(side, api=side.apis[0]))

    return load


def paced(per_second: float, headers: Headers = CLOSE) -> Load:
    """Return phones that send in turn at their times, on a new connection each as the source's."""

    def load(side: Side, seconds: float) -> None:
        seconds *= 2  # a rate so low needs longer for as many requests

        def send(number: int, due: float) -> None:
            _insert(side, headers, staff=FIRST + number % PHONES, due=due)

        open_loop(int(per_second * seconds), seconds, send)

    return load


def little(side: Side, seconds: float) -> None:
    """Fourteen phones, at their users' real peak, for ten times as long."""
    paced(LITTLE_PER_SECOND)(side, 5 * seconds)


def after_batches(size: int, count: int) -> Load:
    """Return 35 detections a second, while so many that came in batches are seen to."""
    in_batches = batches(size, BATCHES)

    def load(side: Side, seconds: float) -> None:
        began = time.monotonic()
        while sum(row.name == BATCHES for row in side.gateway.rows) * size < count:
            in_batches(side, 1.0)
            if time.monotonic() - began > BATCHES_SECONDS:
                raise RuntimeError(f"{count} detections were not stored in time")
        paced(35)(side, 2.5 * seconds)

    return load


def batches(size: int, name: str = "") -> Load:
    """Return phones that send a backlog piece by piece; its times go on from piece to piece."""
    began, backlogs = int(time.time()) - BACKLOG, [count() for _ in range(SENDERS)]
    is_stored = partial(endpoints.verify_batch, size=size)

    def send(side: Side, number: int) -> None:
        first = next(backlogs[number]) * size
        times = (began + 4 * at % BACKLOG for at in range(first, first + size))
        items = [endpoints.detection(BATCH_STAFF + number, MAC, at) for at in times]
        body = endpoints.batch(items)
        side.gateway.measure(name, endpoints.BATCH, is_stored, body, KEEP_ALIVE)

    return lambda side, seconds: closed_loop(SENDERS, seconds, partial(send, side))


def raw_batches(size: int) -> Load:
    """Return a program beside the database that stores as many, as bare as a driver can.

    Documents, indexes and write concern are those of what a batch stores.
    """

    def load(side: Side, seconds: float) -> None:
        with MongoClient[dict[str, Any]](side.stack.mongodb_uri) as client:
            database = client[DATABASE]
            raw, staff = database[RAW], database["staff"]
            sample = staff.find_one({"staff_id": BATCH_STAFF}, {"_id": 0})
            if sample is None:
                raise RuntimeError("no batch was stored before")
            for index in staff.index_information().values():
                options = {name: index[name] for name in OPTIONS if name in index}
                raw.create_index(index["key"], **options)
            ends = time.monotonic() + seconds

            def send(number: int) -> None:
                for first in count(0, size):
                    began = time.monotonic()
                    if began > ends:
                        return
                    raw.insert_many(
                        [_document(sample, number, at) for at in range(first, first + size)],
                        ordered=False,
                    )
                    ms = (time.monotonic() - began) * 1000
                    side.gateway.rows.append(Row("", "", "", began, began, ms, 200, 0))

            threads = [threading.Thread(target=send, args=(n,)) for n in range(SENDERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            raw.drop()

    return load


def _document(sample: Mapping[str, Any], number: int, at: int) -> dict[str, Any]:
    own = {"_id": ObjectId(), "staff_id": BATCH_STAFF + number, "timestamp": 1_700_000_000 + 4 * at}
    return {**sample, **own, **({"event_id": uuid.uuid4().hex} if "event_id" in sample else {})}


def quiet_histories(side: Side, seconds: float) -> None:
    """Four readers of one history of 3,000 that nobody adds to."""
    _read(side, seconds, lambda: seeds.SHORT_STAFF)


def live_histories(side: Side, seconds: float) -> None:
    """The same, to which detections come all the time."""
    _read(side, seconds, lambda: seeds.SHORT_STAFF, writes=lambda: seeds.SHORT_STAFF)


def many_histories(side: Side, seconds: float) -> None:
    """Four readers of many people's histories, to all of which detections come."""

    def anybody() -> int:
        return seeds.FIRST_OF_MANY + random.randrange(seeds.MANY)

    _read(side, seconds, anybody, writes=anybody)


def cold_histories(side: Side, _seconds: float) -> None:
    """Four histories of 30,000 at once."""
    open_loop(4, 0, lambda number, due: _history(side, number, "", due))


def cold_history(side: Side, _seconds: float) -> None:
    """One of them, alone."""
    _history(side, 0, "", time.monotonic())


def after_a_start(side: Side, _seconds: float) -> None:
    """Histories of 30,000 of fourteen people at the source's rate: the first seconds, and then."""
    for name in ("first", "warm"):
        requests = int(EXTRACTS_PER_SECOND * FIRST_SECONDS)

        def send(number: int, due: float, name: str = name) -> None:
            _history(side, number % seeds.LONG_STAFF, name, due)

        open_loop(requests, FIRST_SECONDS, send)


def few(side: Side, seconds: float) -> None:
    """Fourteen phones, and nothing else, for as long as `pages`."""
    paced(LITTLE_PER_SECOND)(side, 2 * seconds)


def pages(side: Side, seconds: float) -> None:
    """The same with many open pages, each of which holds the last answer."""
    ends = time.monotonic() + 4 * seconds

    def page(number: int) -> None:
        held: dict[str, str] = {}
        wait_until(min(ends, time.monotonic() + number * PAGE_SECONDS / PAGES))
        while (now := time.monotonic()) < ends:
            headers, good = {**GZIP, **held}, (200, 304)
            response = side.gateway.measure("page", PAGE, _is_page, None, headers, good=good)
            if etag := response.headers.get("etag"):
                held = {"If-None-Match": etag}
            wait_until(min(ends, now + PAGE_SECONDS))

    opened = [gevent.spawn(page, number) for number in range(PAGES)]
    little(side, seconds)
    gevent.joinall(opened, raise_error=True)


def nothing(_side: Side, seconds: float) -> None:
    """Nobody asks for anything, for ten times as long: timers are seldom."""
    gevent.sleep(10 * seconds)


def _is_page(response: Response) -> None:
    if response.status == 200 and b'"data":[' not in response.body:
        raise WrongResponse(f"no list of people: {response.body[:80]!r}")


def _insert(
    side: Side,
    headers: Headers = KEEP_ALIVE,
    people: int = PHONES,
    *,
    staff: int | None = None,
    name: str = "",
    due: float | None = None,
    api: Api | None = None,
) -> None:
    """Send one detection of somebody and count it."""
    staff = FIRST + random.randrange(people) if staff is None else staff
    path, body = side.dialect.insert(staff)
    side.sent[staff] += 1
    client, is_stored = api or side.gateway, side.dialect.is_stored
    response = client.measure(name, path, is_stored, body, headers, due=due)
    side.stored[staff] += response.status == 200


def _read(
    side: Side,
    seconds: float,
    next_staff: Callable[[], int],
    writes: Callable[[], int] | None = None,
) -> None:
    """Have histories read all the time, with all that was acknowledged and nothing unsent."""
    writing = None
    if writes:
        writing = gevent.spawn(_write, side, seconds, writes)

    def read(_number: int) -> None:
        staff = next_staff()
        least = side.stored[staff]

        def verify(response: Response) -> None:
            rows = response.body.count(side.dialect.mark)
            if not least <= rows <= side.sent[staff]:
                raise WrongResponse(f"{rows} detections, not {least} to {side.sent[staff]}")

        side.read("", staff, verify)

    closed_loop(READERS, seconds, read)
    if writing:
        writing.get()


def _write(side: Side, seconds: float, next_staff: Callable[[], int]) -> None:
    """Send at the times of one phone, which waits for each answer: only then the next is due."""
    began = answered = time.monotonic()
    for number in range(round(seconds * WRITES_PER_SECOND)):
        due = max(answered, began + number / WRITES_PER_SECOND)
        if due > began + seconds:
            return
        wait_until(due)
        _insert(side, staff=next_staff(), name="write", due=due)
        answered = time.monotonic()


def _history(side: Side, staff: int, name: str, due: float) -> None:
    """Read a long history, which must be whole."""

    def verify(response: Response) -> None:
        if (rows := response.body.count(side.dialect.mark)) != seeds.LONG:
            raise WrongResponse(f"{rows} detections, not {seeds.LONG}")

    side.read(name, staff, verify, due)
