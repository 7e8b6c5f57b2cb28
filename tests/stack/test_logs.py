"""What the logs of a whole stack tell of a request, and whom they name."""

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from scripts.processes.waiting import eventually
from tests.stack.conftest import Stack, running_stack

pytestmark = pytest.mark.long

PERSON, MATE = "Zaphod-4711", 987654321987
HISTORY = "/extractbeacon?staff_id=7&start_time=0&end_time=4102444800"


@pytest.fixture(scope="module")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(root, tmp_path_factory.mktemp("logs")) as stack:
        yield stack


def lines_of(stack: Stack, request_id: str) -> list[str]:
    done = stack.script("logs", request_id)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def answered(status: int, answer: requests.Response) -> str:
    """Return the id of a request that got this status, else nothing."""
    return answer.headers["X-Request-ID"] if answer.status_code == status else ""


def test_what_no_log_has(stack: Stack) -> None:
    api = f"{stack.url}/api/v1"
    for person in (PERSON, MATE):
        assert stack.detect(person).status_code == 200
        assert stack.detect(person, beacon_address=f"no{person}").status_code == 400
        item = {"staff_id": person, "mac": "C2A628384B08", "rssi": -20, "event_id": f"{person}"}
        assert stack.session.post(f"{api}/detections", json=[item]).status_code in (200, 400)
        name = {"name": f"{person}", "team": "x"}
        stack.session.put(f"{api}/people/{person}", json=name)
        stack.session.put(
            f"{api}/accounts/{person}", json={"password": f"{person}", "role": "read"}
        )
        stack.session.post(f"{api}/session", json={"name": f"{person}", "password": f"{person}"})
        stack.session.post(f"{api}/people/import", data=f"staff_id,name\n{person},\0{person}")
        for path in (
            *(f"/api/v1/staff/{person}/detections", f"/api/v1/people/{person}"),
            *(f"/monitoring/api/staff/{person}/detections", f"/monitoring/{person}"),
            *(f"/extractbeacon?staff_id={person}&start_time=0&end_time=4102444800", f"/{person}"),
            *(f"/monitoring/replay?staff={person}", f"/api/v1/visits?staff_id={person}"),
        ):
            stack.session.get(f"{stack.url}{path}", headers={"Authorization": f"Bearer {person}"})
    assert stack.history(PERSON)
    logs = list((stack.data / "log").iterdir())
    assert {"requests.log", "gateway.log", "ingest-1.log"} <= {file.name for file in logs}
    for file in logs:
        text = file.read_bytes()
        assert not [who for who in (PERSON, MATE) if str(who).encode() in text], file


def test_one_command_finds_a_request_on_every_part(stack: Stack) -> None:
    stored = stack.detect(7).headers["X-Request-ID"]
    [line] = lines_of(stack, stored)
    assert line.startswith("gateway | {")
    assert '"path":"/newbeacondetect","status":"200"' in line
    mongod = stack.pids()["mongod"]
    os.kill(mongod, signal.SIGSTOP)
    try:
        queued = eventually(lambda: answered(202, stack.detect(8)))
        failed = eventually(lambda: answered(503, stack.get(HISTORY)))
    finally:
        os.kill(mongod, signal.SIGCONT)
    told = lines_of(stack, failed)
    assert any(line.startswith("gateway | ") for line in told)
    assert any(line.startswith("ingest-") and f"request {failed}" in line for line in told), told
    eventually(
        lambda: any(
            line.startswith("ingest-") and line.endswith("nothing waits in the spool any more")
            for line in lines_of(stack, queued)
        )
    )


@pytest.mark.parametrize("name", ["", "x", "0123456789abcdef" * 2 + " -r .", "f" * 31])
def test_what_is_no_request_id_is_refused(stack: Stack, name: str) -> None:
    done = stack.script("logs", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert "REQUEST_ID" in done.stderr


def test_a_request_that_never_was_is_not_found(stack: Stack) -> None:
    done = stack.script("logs", uuid.uuid4().hex)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no line of it" in done.stderr
