"""Measure the ingest service against the old one, both inside 0.3 CPU and 64 MiB.

    .venv/bin/python -m loadtests.bench_service [--rounds 3] [--seconds 3] [CASE...]

Old and new take turns on the same real mongod, which runs outside the limits like the load itself.
Every answer is checked. Exits with 1 when a target is missed.
"""

import argparse
import asyncio
import contextlib
import datetime
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bson import ObjectId
from pymongo import MongoClient

from mongo import topology
from scripts.processes.cluster import Cluster
from scripts.processes.control_groups import SERVICE, LimitedGroup, LimitsUnavailableError, Usage
from scripts.processes.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
MIB = 2**20
STAFF = 14
LONG, SHORT = 30_000, 3_000  # detections of a history
SHORT_STAFF = 100  # who has the short one; 0 to 13 have long ones
WRITES_PER_SECOND = 5  # to the history that is read
EXTRACTS_PER_SECOND = 14.3  # PERF-TP-2
FOREVER = 4_102_444_800
BACKLOG_SECONDS = 90 * 86_400  # of a phone that sends it in pieces, one detection each 4 s
WARM_UP_SECONDS = 1.0
GZIP = b"Accept-Encoding: gzip\r\n"


class Service:
    """One service inside the limits, running while in the context."""

    def __init__(self, kind: str, cluster: Cluster) -> None:
        self.kind = kind
        self.port = free_port()
        self._cluster = cluster

    def __enter__(self) -> "Service":
        """Start it and wait until it serves."""
        command = [sys.executable, "-m", "gunicorn", "--log-level", "error"]
        if self.kind == "old":
            command += ["--bind", f"127.0.0.1:{self.port}", "loadtests.baseline.app:create_app()"]
        else:
            command += ["-c", str(ROOT / "services" / "ingest" / "gunicorn.conf.py")]
        folders = [ROOT, ROOT / "services" / "ingest"]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "MONGODB_URI": self._cluster.uri(),
            "INGEST_BIND": f"127.0.0.1:{self.port}",
            "SPOOL_FILE": str(self._cluster.folder / f"{self.port}.db"),
            "MALLOC_ARENA_MAX": "1",  # as in the image
        }
        self.group = LimitedGroup(self.kind, SERVICE)
        self._process = subprocess.Popen(self.group.command(command), env=environment)
        deadline = time.monotonic() + 30
        while not self._serves():
            if time.monotonic() > deadline:
                self.__exit__()
                raise TimeoutError(f"the {self.kind} service does not start")
            time.sleep(0.05)
        return self

    def _serves(self) -> bool:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with contextlib.suppress(OSError):
            return bool(opener.open(f"http://127.0.0.1:{self.port}/healthz", timeout=5).status)
        return False

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.group.close()
        self._process.wait()


class Connection(asyncio.Protocol):
    """A lean HTTP/1.1 client: one request at a time on one kept connection."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._length = -1
        self.closed = False
        self._answer: asyncio.Future[tuple[int, bytes, bytes]] | None = None

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect."""
        _, connection = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return connection

    def connection_made(self, transport: Any) -> None:
        """Note where to write."""
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the request that waits."""
        self.closed = True
        if self._answer and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("closed without an answer"))

    def data_received(self, data: bytes) -> None:
        """Collect the answer."""
        self._received += data
        if self._length < 0 and (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[: end + 2]).lower()
            at = head.index(b"content-length:") + 15
            self._head, self._length = head, end + 4 + int(head[at : head.index(b"\r", at)])
        if 0 <= self._length <= len(self._received) and self._answer:
            body = bytes(self._received[len(self._head) + 2 : self._length])
            self._received.clear()
            self._length = -1
            self.closed = b"\r\nconnection: close" in self._head
            self._answer.set_result((int(self._head[9:12]), self._head, body))

    async def ask(self, request: bytes) -> tuple[int, bytes, bytes]:
        """Return status, head (lower case) and body. Raises OSError."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await asyncio.wait_for(self._answer, 60)

    def close(self) -> None:
        """Close."""
        self._transport.close()


class Result(NamedTuple):
    """What a case measured of one service."""

    per_second: float = 0.0  # requests, or detections for batches
    cpu_ms: float = 0.0  # of the service, for each of them
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    errors: int = 0
    peak_mib: float = 0.0
    killed: int = 0


Work = Callable[[Connection, int], Awaitable[int]]  # returns how many it did, 0 for an error


class Meter:
    """Takes times, and turns them and the kernel's counters into a result."""

    def __init__(self, *services: Service) -> None:
        self._services = services
        self._before = [service.group.usage() for service in services]
        self._began = time.monotonic()
        self.took: list[float] = []
        self.done = self.errors = 0

    async def time(self, work: Awaitable[int]) -> None:
        """Do one request and count what came of it."""
        began = time.monotonic()
        try:
            done = await work
        except (OSError, TimeoutError):
            done = 0
        self.took.append(time.monotonic() - began)
        self.done += done
        self.errors += not done

    def result(self) -> Result:
        """Return what was measured since the start."""
        seconds = time.monotonic() - self._began
        after: list[Usage] = [service.group.usage() for service in self._services]
        pairs = zip(after, self._before, strict=True)
        cpu = sum(now.cpu_seconds - then.cpu_seconds for now, then in pairs)
        took = sorted(self.took) or [0.0]
        return Result(
            self.done / seconds,
            cpu * 1000 / max(1, self.done),
            took[len(took) // 2] * 1000,
            took[min(len(took) - 1, int(len(took) * 0.99))] * 1000,
            self.errors,
            max(usage.peak_bytes for usage in after) / MIB,
            sum(usage.killed for usage in after),
        )


async def closed_loop(service: Service, connections: int, seconds: float, work: Work) -> Result:
    """Keep so many connections busy for so long."""
    meter = Meter(service)
    end = time.monotonic() + seconds

    async def one(number: int) -> None:
        connection: Connection | None = None
        while time.monotonic() < end:
            try:
                connection = connection or await Connection.open(service.port)
            except OSError:
                meter.errors += 1
                await asyncio.sleep(0.1)
                continue
            await meter.time(work(connection, number))
            if connection.closed:  # as the old service does after each answer
                connection.close()
                connection = None
        if connection:
            connection.close()

    await asyncio.gather(*(one(number) for number in range(connections)))
    return meter.result()


def request(method: str, path: str, headers: bytes = b"", body: bytes = b"") -> bytes:
    """Return a request as our NGINX sends a phone's, and to the old service no more than that."""
    more = b"X-Request-ID: %s\r\nX-Request-Start: %.3f\r\n" % (
        os.urandom(8).hex().encode(),
        time.time(),
    )
    if body:
        more += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    start = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
    return start + more + headers + b"\r\n" + body


def detection(staff_id: int) -> bytes:
    """Return a phone's request."""
    query = f"user_address={staff_id}&beacon_address=C2A628384B08&rssi=-20"
    return request("GET", f"/newbeacondetect?{query}")


async def insert(connection: Connection, number: int) -> int:
    """Send one detection of anybody."""
    staff_id = 200 + (number + os.urandom(1)[0]) % STAFF
    status, _, body = await connection.ask(detection(staff_id))
    return int(status == 200 and body == b"New Beacon Detection Added")


def batch_of(size: int) -> Work:
    """Return work that sends a backlog piece by piece, each detection with an event id of its own.

    The pieces are made as text: the load generator is to cost little beside what it measures.
    """
    run = os.urandom(6).hex()
    sent: dict[int, int] = {}  # by connection: how many detections of its backlog
    began = int(time.time()) - BACKLOG_SECONDS

    async def send(connection: Connection, number: int) -> int:
        first = sent.get(number, 0)
        sent[number] = first + size
        items = ",".join(
            f'{{"staff_id":{300 + number},"mac":"C2A628384B08","rssi":-20'
            f',"timestamp":{began + 4 * one},"event_id":"{run}-{number}-{one}"}}'
            for one in range(first, first + size)
        )
        body = f'{{"detections":[{items}]}}'.encode()
        asked = request("POST", "/api/v1/detections", b"", body)
        status, _, answer = await connection.ask(asked)
        return size if status == 200 and answer.count(b'"status":"stored"') == size else 0

    return send


def extract(staff_id: int, headers: bytes = b"") -> bytes:
    """Return the request for a whole history."""
    path = f"/extractbeacon?staff_id={staff_id}&start_time=1&end_time={FOREVER}"
    return request("GET", path, headers)


def rows(head: bytes, body: bytes) -> int:
    """Return how many detections an answer holds."""
    if b"content-encoding: gzip" in head:
        body = gzip.decompress(body)
    return body.count(b'"timestamp"') if body.rstrip().endswith(b"]}") else -1


class Live:
    """A history that is written to while it is read: every answer must be exact."""

    def __init__(self, service: Service, before: int, headers: bytes) -> None:
        self._service = service
        self._headers = headers
        self._sent = self._acknowledged = before

    async def read(self, connection: Connection, *_: int) -> int:
        """Read it: with all that was acknowledged before, and nothing that nobody sent."""
        least = self._acknowledged
        status, head, body = await connection.ask(extract(SHORT_STAFF, self._headers))
        return int(status == 200 and least <= rows(head, body) <= self._sent)

    async def write(self, until: float) -> None:
        """Write to it at a steady rate."""
        while time.monotonic() < until:
            connection = await Connection.open(self._service.port)
            self._sent += 1
            status, _, _ = await connection.ask(detection(SHORT_STAFF))
            self._acknowledged += status == 200
            connection.close()
            await asyncio.sleep(1 / WRITES_PER_SECOND)


class Bench:
    """The cases, on one database."""

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        self._cluster = cluster
        self._seconds = seconds

    def prepare(self) -> None:
        """Store the histories that the cases read."""
        with MongoClient[dict[str, Any]](self._cluster.uri()) as client:
            database = client["ICT3102"]
            for staff_id, count in [*((n, LONG) for n in range(STAFF)), (SHORT_STAFF, SHORT)]:
                now = int(time.time())
                at = datetime.datetime.now(datetime.UTC)
                stored = [
                    {"_id": ObjectId(), "staff_id": staff_id, "level": str(1 + n // 60 % 7)}
                    | {"location": f"Lobby {'AB'[n // 30 % 2]}", "timestamp": now - 4 * n}
                    | {"rssi": -60, "mac": "C2A628384B08", "received_at": at}
                    for n in range(count)
                ]
                for first in range(0, count, 5000):
                    database["staff"].insert_many(stored[first : first + 5000], ordered=False)
                database["latest"].insert_one(
                    {"_id": staff_id, "version": 1, "changes": [0], "recent": []}
                )

    def _count(self, staff_id: int) -> int:
        with MongoClient[dict[str, Any]](self._cluster.uri()) as client:
            return client["ICT3102"]["staff"].count_documents({"staff_id": staff_id})

    def inserts(self, service: Service, connections: int) -> Result:
        """Phones that send one detection after the other."""
        return self._warm(service, connections, insert)

    def batches(self, service: Service, size: int) -> Result:
        """Phones that send a backlog."""
        return self._warm(service, 4, batch_of(size))

    def _warm(self, service: Service, connections: int, work: Work) -> Result:
        """Measure a service that has served for a moment: it runs for weeks, not for seconds."""
        asyncio.run(closed_loop(service, connections, WARM_UP_SECONDS, work))
        return asyncio.run(closed_loop(service, connections, self._seconds, work))

    def live(self, service: Service, headers: bytes) -> Result:
        """Four readers of one history of 3,000, to which detections come all the time."""

        async def run() -> Result:
            live = Live(service, self._count(SHORT_STAFF), headers)
            writer = asyncio.create_task(live.write(time.monotonic() + self._seconds))
            result = await closed_loop(service, 4, self._seconds, live.read)
            await writer
            return result

        return asyncio.run(run())

    def mixed(self, service: Service) -> tuple[Result, Result]:
        """Eight phones and four readers of the short history at once."""

        async def run() -> tuple[Result, Result]:
            live = Live(service, self._count(SHORT_STAFF), b"")
            phones, readers = await asyncio.gather(
                closed_loop(service, 8, self._seconds, insert),
                closed_loop(service, 4, self._seconds, live.read),
            )
            return phones, readers

        return asyncio.run(run())

    def cold(self, service: Service) -> Result:
        """Four long histories at once from a service that has just started."""

        async def run() -> Result:
            meter = Meter(service)

            async def read(staff_id: int) -> int:
                connection = await Connection.open(service.port)
                status, head, body = await connection.ask(extract(staff_id))
                connection.close()
                return int(status == 200 and rows(head, body) == LONG)

            await asyncio.gather(*(meter.time(read(n)) for n in range(4)))
            return meter.result()

        return asyncio.run(run())

    def pulls(self, services: list[Service], headers: bytes) -> Result:
        """Two services asked for long histories at a fixed rate, whatever the answers."""

        async def run() -> Result:
            free = [[await Connection.open(one.port) for _ in range(8)] for one in services]
            for number in range(2 * STAFF):  # each service has seen each history once
                await free[number % 2][0].ask(extract(number // 2, headers))
            meter = Meter(*services)

            async def pull(number: int) -> int:
                here = free[number % 2]
                connection = here.pop() if here else await Connection.open(services[0].port)
                status, head, body = await connection.ask(extract(number % STAFF, headers))
                here.append(connection)
                return int(status == 200 and rows(head, body) == LONG)

            tasks, began = [], time.monotonic()
            for number in range(int(EXTRACTS_PER_SECOND * 2 * self._seconds)):
                await asyncio.sleep(began + number / EXTRACTS_PER_SECOND - time.monotonic())
                tasks.append(asyncio.create_task(meter.time(pull(number))))
            await asyncio.gather(*tasks)
            return meter.result()

        return asyncio.run(run())


class Row(NamedTuple):
    """A case: what it is called, and its results by service, one a round."""

    name: str
    old: list[Result]
    new: list[Result]
    target: str
    reached: bool


def ratios(old: list[Result], new: list[Result]) -> list[float]:
    """Return how many times as fast the new one was in each round."""
    pairs = zip(old, new, strict=True)
    return [after.per_second / max(0.001, before.per_second) for before, after in pairs]


def cpu_ratios(old: list[Result], new: list[Result]) -> list[float]:
    """Return how many times the CPU the old one took for each request.

    It is the ratio of the rates where the limit of 0.3 CPU is all that holds both back. On a busy
    machine the database or the load generator hold back the faster one first.
    """
    pairs = zip(old, new, strict=True)
    return [before.cpu_ms / max(0.0001, after.cpu_ms) for before, after in pairs]


def at_least(old: list[Result], new: list[Result], least: float | None) -> bool:
    """Tell whether the median of either ratio reaches a target, without an error."""
    if any(result.errors for result in new):
        return False
    medians = (statistics.median(each(old, new)) for each in (ratios, cpu_ratios))
    return least is None or max(medians) >= least


class Measurement:
    """All rounds of all cases, and the verdict."""

    def __init__(self, bench: Bench, cluster: Cluster, rounds: int, wanted: list[str]) -> None:
        self._bench = bench
        self._cluster = cluster
        self._rounds = rounds
        self._wanted = wanted
        self._peaks: list[float] = []
        self._singles: list[Result] = []
        self.rows: list[Row] = []

    def run(self) -> bool:
        """Measure everything that is wanted; tell whether all targets were reached."""
        for connections, least in ((1, None), (8, None), (32, 8.0), (128, None)):
            case = f"insert, {connections} connections"
            self._compare(case, lambda one, c=connections: self._bench.inserts(one, c), least)  # type: ignore[misc]
        for size, least in ((50, None), (500, 100.0)):
            self._batches(size, least)
        self._compare("live history of 3,000", lambda one: self._bench.live(one, b""), 10.0)
        self._compare("the same, gzip taken", lambda one: self._bench.live(one, GZIP), None)
        self._mixed()
        self._cold()
        self._pulls("14.3/s of 30,000, two services", b"")
        self._pulls("the same, gzip taken", GZIP)
        if self._peaks:
            peak = max(self._peaks)
            self.rows.append(Row(f"peak memory {peak:.0f} MiB", [], [], "<= 58 MiB", peak <= 58))
        return all(row.reached for row in self.rows)

    def _skipped(self, name: str) -> bool:
        return bool(self._wanted) and not any(word in name for word in self._wanted)

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        self._peaks += [result.peak_mib for result in row.new]
        show(row)

    def _rounds_of(
        self, work: Callable[[Service], Result], kinds: tuple[str, ...]
    ) -> Iterator[tuple[Result, ...]]:
        for _ in range(self._rounds):
            results = []
            for kind in kinds:
                with Service(kind, self._cluster) as service:
                    results.append(work(service))
            yield tuple(results)

    def _compare(self, name: str, work: Callable[[Service], Result], least: float | None) -> None:
        if self._skipped(name):
            return
        pairs = list(self._rounds_of(work, ("old", "new")))
        old, new = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if name.startswith("insert, 32"):
            self._singles = old
        reached = at_least(old, new, least)
        self._add(Row(name, old, new, f">= {least:.0f}x" if least else "", reached))

    def _batches(self, size: int, least: float | None) -> None:
        name = f"batches of {size}, against single inserts at 32"
        if self._skipped(name):
            return
        if not self._singles:
            work = lambda one: self._bench.inserts(one, 32)  # noqa: E731
            self._singles = [pair[0] for pair in self._rounds_of(work, ("old",))]
        new = [
            pair[0]
            for pair in self._rounds_of(lambda one: self._bench.batches(one, size), ("new",))
        ]
        reached = at_least(self._singles, new, least)
        self._add(Row(name, self._singles, new, f">= {least:.0f}x" if least else "", reached))

    def _mixed(self) -> None:
        name = "mixed, 8 phones and 4 readers"
        if self._skipped(name):
            return
        both: dict[str, list[tuple[Result, Result]]] = {"old": [], "new": []}
        for _ in range(self._rounds):
            for kind, found in both.items():
                with Service(kind, self._cluster) as service:
                    found.append(self._bench.mixed(service))
        for number, part in enumerate(("phones", "readers")):
            old, new = ([pair[number] for pair in both[kind]] for kind in ("old", "new"))
            self._add(Row(f"{name}: {part}", old, new, "", not any(one.errors for one in new)))

    def _cold(self) -> None:
        name = "four cold histories of 30,000 at once"
        if self._skipped(name):
            return
        pairs = list(self._rounds_of(self._bench.cold, ("old", "new")))
        new = [pair[1] for pair in pairs]
        reached = not any(result.errors or result.killed for result in new)
        self._add(Row(name, [pair[0] for pair in pairs], new, "no error", reached))

    def _pulls(self, name: str, headers: bytes) -> None:
        if self._skipped(name):
            return
        with Service("new", self._cluster) as first, Service("new", self._cluster) as second:
            results = [self._bench.pulls([first, second], headers) for _ in range(self._rounds)]
        reached = all(result.p99_ms < 500 and not result.errors for result in results)
        self._add(Row(name, [], results, "p99 < 500 ms, no error", reached))


def middle(results: list[Result]) -> Result:
    """Return the median of each figure; errors and kills are added up, of peaks the highest."""
    columns = [statistics.median(column) for column in zip(*results, strict=True)]
    return Result(*columns)._replace(
        errors=sum(result.errors for result in results),
        killed=sum(result.killed for result in results),
        peak_mib=max(result.peak_mib for result in results),
    )


def show(row: Row) -> None:
    """Print a case as a line of a Markdown table."""
    cells = []
    for results in (row.old, row.new):
        if not results:
            cells.append("")
            continue
        one = middle(results)
        text = f"{one.per_second:,.1f}/s, {one.cpu_ms:.3f} ms CPU, p50 {one.p50_ms:.0f}"
        text += f", p99 {one.p99_ms:.0f} ms, {one.peak_mib:.0f} MiB"
        text += f", {one.errors} errors" if one.errors else ""
        cells.append(text + (f", killed {one.killed} times" if one.killed else ""))
    spread = ""
    if row.old and row.new:
        times, cpu = ratios(row.old, row.new), cpu_ratios(row.old, row.new)
        spread = f"{statistics.median(times):.1f}x ({min(times):.1f} to {max(times):.1f}), CPU "
        spread += f"{statistics.median(cpu):.1f}x ({min(cpu):.1f} to {max(cpu):.1f})"
    verdict = "" if row.reached else " MISSED"
    print(
        f"| {row.name} | {cells[0]} | {cells[1]} | {spread} | {row.target}{verdict} |", flush=True
    )


def main() -> None:
    """Run the cases named, or all, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.bench_service", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("cases", nargs="*", help="parts of their names; all without")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="waymark-bench-"))
    cluster = Cluster(topology.load(topology.EMBEDDED), folder)
    try:
        with cluster.running(ROOT / "mongo" / "directory.csv"):
            bench = Bench(cluster, options.seconds)
            bench.prepare()
            print("| case | old | new | ratio: median (spread) | target |\n|---|---|---|---|---|")
            measurement = Measurement(bench, cluster, options.rounds, options.cases)
            reached = measurement.run()
            for row in measurement.rows:
                if not row.new:
                    show(row)
    except LimitsUnavailableError as error:
        sys.exit(str(error))
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
