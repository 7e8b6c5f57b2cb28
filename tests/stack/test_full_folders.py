"""A native stack on small disks, each of which is filled to the last byte."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from scripts.processes.waiting import eventually
from tests.needs import only_root
from tests.phones import BEACON, Phones, through
from tests.stack.conftest import Stack, kill_tree
from tests.stack.disks import Disks

pytestmark = [
    pytest.mark.long,
    only_root,
]

PHONES = 8
NEARLY = 8 * 2**20 - 4000  # bytes of a log that is rotated within a dozen requests
BACK_SECONDS = 120


class DiskStack(Stack):
    """A stack with disks at some of its folders."""

    def __init__(self, root: Path, data: Path, disks: Disks) -> None:
        super().__init__(root, data, disks.prefix)
        self.disks = disks

    def log(self) -> Path:
        return self.disks.seen(self.data / "log" / "requests.log")

    def supervisor(self) -> psutil.Process:
        file = self.disks.seen(self.data / "run" / "supervisord.pid")
        return psutil.Process(int(file.read_text()))

    def phones(self) -> Phones:
        # 150/s in all: the gateway lets 200/s of one address pass
        staff = [f"{uuid.uuid4().hex[:8]}-{number}" for number in range(PHONES)]
        return Phones(through(self.url), staff, rest_seconds=0.05)

    def batch(self, items: int) -> tuple[int, Any]:
        """Send a batch, larger than the gateway's memory for a body; return status and answer."""
        item = {"staff_id": "backlog", "mac": BEACON, "rssi": -20}
        every = [item | {"event_id": uuid.uuid4().hex} for _ in range(items)]
        sent = {"detections": every}
        answer = self.session.post(f"{self.url}/api/v1/detections", json=sent, timeout=30)
        return answer.status_code, answer.json()

    def well(self) -> bool:
        return self.script("status").returncode == 0

    def check(self, phones: Phones) -> None:
        """Wait until all is well and drained, then compare what is stored with the receipts."""
        eventually(self.well, BACK_SECONDS)

        def drained() -> bool:
            ports = self.environment["WAYMARK_INGEST_PORTS"].split()
            ready = [self.session.get(f"http://127.0.0.1:{port}/readyz") for port in ports]
            return all(
                answer.status_code == 200 and not answer.json()["queued"] for answer in ready
            )

        eventually(drained, BACK_SECONDS)
        stored = {staff_id: len(self.history(staff_id)) for staff_id in phones.acknowledged}
        assert stored == phones.acknowledged


@contextmanager
def running_on(root: Path, data: Path, **sizes: str) -> Iterator[DiskStack]:
    """Run a stack with disks of these sizes at folders in its own."""
    with Disks({data / name: size for name, size in sizes.items()}) as disks:
        stack = DiskStack(root, data, disks)
        try:
            stack.up()
            yield stack
        finally:
            stack.down()


@pytest.fixture(scope="module")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DiskStack]:
    """Return a stack with a disk for each kind of folder."""
    data = tmp_path_factory.mktemp("folders") / "data"
    with running_on(root, data, log="16m", run="48m", spool="16m", mongod="600m") as stack:
        yield stack


def test_without_room_for_logs_nothing_stops(stack: DiskStack) -> None:
    pid = stack.pids()["ingest-1"]
    log = stack.log()
    with log.open("ab") as file:  # it is to be rotated where there is no room
        file.write(b"\n" * (NEARLY - log.stat().st_size))
    eventually(lambda: stack.get("/monitoring") and log.stat().st_size > NEARLY)
    with stack.disks.full(stack.data / "log"), stack.phones() as phones:
        phones.wait_for(200, more=600, seconds=60)  # more than the pipe to supervisord takes
        kill_tree(pid)
        eventually(lambda: stack.pids().get("ingest-1", pid) != pid, BACK_SECONDS)
        eventually(stack.well, BACK_SECONDS)
    assert set(phones.answers) == {200}
    stack.check(phones)
    # Rotated as soon as there was room, and written to again.
    eventually(lambda: stack.get("/monitoring") and log.exists())
    eventually(lambda: stack.get("/monitoring") and 0 < log.stat().st_size < NEARLY)


def test_without_room_for_the_gateways_files_only_large_bodies_wait(stack: DiskStack) -> None:
    def cached() -> bool:
        stack.get("/retrieveformonitoring")
        lines = stack.log().read_bytes().splitlines()
        return any(
            b"/retrieveformonitoring" in line and b'"cache":"HIT"' in line for line in lines[-9:]
        )

    run = stack.data / "run"
    eventually(cached)
    with stack.phones() as phones:
        with stack.disks.full(run):
            eventually(lambda: not (stack.disks.seen(run) / "room").exists())
            for path in ("/monitoring", "/retrieveformonitoring", "/api/v1/now", "/docs"):
                assert stack.get(path).status_code == 200, path
            status, said = stack.batch(400)
            assert (status, list(said)) == (503, ["error"])
            assert stack.batch(20)[0] == 200
            phones.wait_for(200, more=50)
        eventually(lambda: stack.batch(400)[0] == 200)
    assert set(phones.answers) == {200}
    eventually(cached)
    stack.check(phones)


def test_without_room_for_spools_the_database_is_enough(stack: DiskStack) -> None:
    with stack.phones() as phones, stack.disks.full(stack.data / "spool"):
        phones.wait_for(200, more=50)
        assert stack.batch(400)[0] == 200
    assert set(phones.answers) == {200}
    stack.check(phones)


def test_without_room_for_the_database_detections_wait_in_the_spool(stack: DiskStack) -> None:
    with stack.phones() as phones:
        phones.wait_for(200, more=20)
        with stack.disks.full(stack.data / "mongod"):
            phones.wait_for(202, more=100, seconds=BACK_SECONDS)  # mongod has ended itself
            assert stack.batch(400)[0] == 202
        phones.wait_for(200, more=50, seconds=BACK_SECONDS)
    assert set(phones.answers) == {200, 202}
    stack.check(phones)


def test_a_full_data_disk_ends_only_the_database_and_all_comes_back_alone(
    root: Path, tmp_path: Path
) -> None:
    with running_on(root, tmp_path / "data", **{".": "700m"}) as stack:
        supervisor, pids = stack.supervisor(), stack.pids()
        with stack.phones() as phones:
            phones.wait_for(200, more=20)
            with stack.disks.full(stack.data):
                phones.wait_for(503, more=20, seconds=BACK_SECONDS)  # neither database nor spool
                for part in ("ingest-1", "monitoring"):
                    kill_tree(pids[part])
                phones.wait_for(503, more=200, seconds=BACK_SECONDS)
                eventually(lambda: stack.get("/monitoring").status_code == 200, BACK_SECONDS)
                assert stack.script("status").returncode == 1
            phones.wait_for(200, more=50, seconds=BACK_SECONDS)
        assert {200, 503} <= set(phones.answers) <= {200, 202, 503}
        stack.check(phones)
        assert supervisor.is_running()
        assert stack.pids()["gateway"] == pids["gateway"]
