"""A year of the source's 14 people, sealed: what it takes of the disk, and how soon one reads it.

Run by name: `./scripts/test tests/services/ingest/sealed/test_year.py -s` prints the figures of
docs/measurements.md. The services are inside their limits.
"""

import random
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from bson import ObjectId, Timestamp
from pymongo import MongoClient
from pymongo.collection import Collection

from ingest.storage.detections.documents import told_id
from ingest.storage.sealed.blocks import MAX_DETECTIONS, SealedDetection, checksum, sealed
from ingest.storage.sealed.sealed import Sealed
from loadtests.headroom.stack import MIB, LimitedStack
from mongo.directory import parse
from scripts.processes.cluster import DIRECTORY
from tests.limited_stack import limited_stack

pytestmark = pytest.mark.named

PEOPLE, DAYS, A_DAY, EACH_SECONDS = 14, 365, 10_800, 4
DAY_SECONDS = 86_400
NOW = int(time.time())
END = NOW - 2 * DAY_SECONDS  # what is newer would still be rows
BEGIN = END - DAYS * DAY_SECONDS
# How many different days each person has, which come again and again.
DIFFERENT = 40
BYTES_EACH = 8.0
BEACONS = parse(DIRECTORY.read_text("utf-8"))


def walk(person: int, chance: random.Random, start: int) -> Iterator[SealedDetection]:
    """Yield a day: some minutes in a room, then the next one; the strength is noise."""
    beacon, left = BEACONS[0], 0
    for at in range(start, start + A_DAY * EACH_SECONDS, EACH_SECONDS):
        if not left:
            beacon, left = chance.choice(BEACONS), chance.randrange(5, 90)
        left -= 1
        rssi, received = round(chance.gauss(-67, 6)), int(at + chance.random() * 1.5)
        id_ = told_id(at.to_bytes(4, "big") + chance.randbytes(2), person, beacon.mac, rssi)
        place = beacon.mac, beacon.level, beacon.location
        yield SealedDetection(id_, *place, at, rssi, received, None, None)


def blocks(person: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield somebody's year: days are made once, and moved."""
    days = []
    for _ in range(DIFFERENT):
        detections = list(walk(person, chance, 0))
        days.append(
            [
                sealed(person, detections[at : at + MAX_DETECTIONS])
                for at in range(0, len(detections), MAX_DETECTIONS)
            ]
        )
    for day in range(DAYS):
        for block in days[day % DIFFERENT]:
            yield moved(block, BEGIN + day * DAY_SECONDS)


def moved(block: dict[str, Any], seconds: int) -> dict[str, Any]:
    """Return a block of another time; its columns count from its first detection."""
    times = {name: block[name] + seconds for name in ("first", "last", "since", "until")}
    places = [place | {"heard": place["heard"] + seconds} for place in block["places"]]
    name = {"staff_id": block["staff_id"], "last": times["last"]}
    whole = block | times | {"_id": name, "places": places, "sealed_at": NOW}
    return whole | {"checksum": checksum(whole)}


@pytest.fixture(scope="module")
def stack() -> Iterator[LimitedStack]:
    with limited_stack() as stack, MongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        store(client["ICT3102"]["sealed"])
        yield stack


def store(collection: Collection[dict[str, Any]]) -> None:
    """Have everybody's days come in as they do: all of them in turn."""
    chance = random.Random(1)
    years = [blocks(person, chance) for person in range(PEOPLE)]
    for turn in zip(*years, strict=True):
        collection.insert_many(turn)


def test_it_lies_within_the_disk_that_is_stated(stack: LimitedStack) -> None:
    with MongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        size = stored_bytes(client)
    detections = PEOPLE * DAYS * A_DAY
    print(f"\n{detections:,} detections, {size / 1e6:,.0f} MB, {size / detections:.2f} bytes each")
    assert size / detections <= BYTES_EACH


def read(url: str) -> tuple[float, bytes]:
    """Return how long an answer took, in seconds, and what it is."""
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=60) as answer:
        body = answer.read()
    return time.monotonic() - began, body


def used(stack: LimitedStack) -> dict[str, float]:
    """Return the CPU seconds of the services, of the gateway and of the database so far."""
    sums: dict[str, float] = {}
    for name, usage in stack.usage().items():
        part = name.split("-")[0]
        sums[part] = sums.get(part, 0.0) + usage.cpu_seconds
    return sums


def day(number: int) -> tuple[int, int]:
    """Return the first and the last second of a day of the year."""
    start = BEGIN + number * DAY_SECONDS
    return start, start + DAY_SECONDS - 1


def a_day(person: int, number: int) -> str:
    start, end = day(number)
    return f"/extractbeacon?staff_id={person}&start_time={start}&end_time={end}"


def thirty_thousand(person: int, number: int) -> str:
    start, _ = day(number)
    end = start + 2 * DAY_SECONDS + (30_000 - 2 * A_DAY) * EACH_SECONDS - 1
    return f"/extractbeacon?staff_id={person}&start_time={start}&end_time={end}"


def a_page(person: int, number: int) -> str:
    start, end = day(number)
    return f"/api/v1/staff/{person}/detections?from={start}&to={end}&limit=100"


def visits(person: int, number: int) -> str:
    start, end = day(number)
    beacon = BEACONS[person % len(BEACONS)]
    query = {"level": beacon.level, "location": beacon.location, "from": start, "to": end}
    return f"/api/v1/visits?{urlencode(query)}"


def coverage(_person: int, _number: int) -> str:
    return "/api/v1/coverage"


def unknown(_person: int, number: int) -> str:
    return f"/api/v1/beacons/unknown?since={day(number)[0]}"


@pytest.mark.parametrize("path", [a_day, thirty_thousand, a_page, visits, coverage, unknown])
def test_what_is_read_comes_soon(stack: LimitedStack, path: Callable[[int, int], str]) -> None:
    times, sizes = [], []
    before = used(stack)
    for person in range(10):
        seconds, body = read(stack.url + path(person, 20 + 30 * person))
        times.append(seconds * 1000)
        sizes.append(len(body))
    cpu = {part: round((after - before[part]) * 100, 1) for part, after in used(stack).items()}
    median = statistics.median(times)
    print(
        f"\n{path.__name__}: {median:.0f} ms ({min(times):.0f} to {max(times):.0f}),"
        f" {statistics.median(sizes):,.0f} bytes; CPU in ms: {cpu}"
    )
    assert median < 5000


@pytest.mark.parametrize(
    "path",
    [
        "/extractbeacon?staff_id=3&start_time=0&end_time=4102444800",
        "/api/v1/staff/3/detections?format=csv",
        "/api/v1/staff/3/detections?format=geojson",
    ],
)
def test_a_whole_year_streams(stack: LimitedStack, path: str) -> None:
    for group in stack.groups().values():
        group.forget_peak()
    began, size, rows = time.monotonic(), 0, 0
    with urllib.request.urlopen(stack.url + path, timeout=600) as answer:
        while piece := answer.read(1 << 20):
            size += len(piece)
    seconds = time.monotonic() - began
    rows = DAYS * A_DAY
    peaks = {name: group.usage().peak_bytes / MIB for name, group in stack.groups().items()}
    print(f"\n{path}: {rows / seconds:,.0f} rows/s, {size / 1e6:,.0f} MB, {seconds:.0f} s, {peaks}")
    assert all(group.usage().killed == 0 for group in stack.groups().values())


TRICKLED_DAYS, LAP_HOURS, FIRST_OF_TRICKLE = 6, 6, 100


def rows(person: int, chance: random.Random, start: int) -> list[dict[str, Any]]:
    """Return a day as it is stored while it comes in."""
    return [
        {
            "_id": ObjectId(bytes.fromhex(known.id[:8]) + chance.randbytes(8)),
            "staff_id": person,
            "level": known.level,
            "location": known.location,
            "timestamp": known.timestamp,
            "rssi": known.rssi,
            "mac": known.mac,
            "received_at": datetime.fromtimestamp(known.received_at, UTC),
            "stored": Timestamp(known.timestamp, 1),
        }
        for known in walk(person, chance, start)
    ]


def test_what_sealing_takes(stack: LimitedStack) -> None:
    """As it trickles in: each person's turn comes every few hours."""
    chance, people = random.Random(2), range(FIRST_OF_TRICKLE, FIRST_OF_TRICKLE + PEOPLE)
    start = BEGIN - 30 * DAY_SECONDS
    sealed_count = deleted = 0
    service = mongod = 0.0
    with MongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        database = client["ICT3102"]
        sealer, size = Sealed(database["staff"]), stored_bytes(client)
        for day in range(TRICKLED_DAYS):
            of_day = [rows(person, chance, start + day * DAY_SECONDS) for person in people]
            for first in range(0, DAY_SECONDS, LAP_HOURS * 3600):
                now = start + day * DAY_SECONDS + first
                for each in of_day:
                    part = [row for row in each if now <= row["timestamp"] < now + LAP_HOURS * 3600]
                    if part:
                        database["staff"].insert_many(part)
                before, cpu = used(stack)["mongod"], time.process_time()
                for person in people:
                    deleted += sum(piece.deleted for piece in sealer.settle(person, now))
                    while count := sealer.seal(person, now - 2 * DAY_SECONDS, now):
                        sealed_count += count
                service += time.process_time() - cpu
                mongod += used(stack)["mongod"] - before
        each_bytes = (stored_bytes(client) - size) / sealed_count
    print(
        f"\n{sealed_count:,} sealed, {deleted:,} deleted: {service / sealed_count * 1e6:.1f} us"
        f" of a service and {mongod / sealed_count * 1e6:.1f} us of mongod for each;"
        f" {each_bytes:.2f} bytes each"
    )
    assert each_bytes <= BYTES_EACH


def stored_bytes(client: MongoClient[dict[str, Any]]) -> int:
    client.admin.command("fsync")
    stats = client["ICT3102"].command("collStats", "sealed")
    return int(stats["storageSize"] + stats["totalIndexSize"])
