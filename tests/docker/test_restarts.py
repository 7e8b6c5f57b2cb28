"""Restarts heal, and neither they nor `down` and `up` lose a detection."""

import functools
import json
import os
import signal
from pathlib import Path

import pytest
import requests

from scripts.processes.waiting import eventually
from tests.docker.conftest import MONGO, ONE_SHOT, OURS, Stack, budget, budget_rows

HEAL_SECONDS = 420.0  # emulated parts, beside others: 180 were once too few at a load of 30
HEALTHY_SECONDS = 150.0
# Of these, one lies on one shard and four on the other (docs/measurements.md).
STAFF = range(5)
# Detections of these tests are so many seconds after a time; those of other tests are of today.
FIRST = 1_600_000_000
LAST = FIRST + 1_000_000
QUEUED = 10
HANG_SECONDS = 360.0  # three checks of 30 s without an answer, and what lies between them
MISSING = "docker compose up -d --force-recreate"  # what to do where a network is
HANGING = ("shard1", "ingest-1")


def numbers(stack: Stack, staff_id: int) -> list[int] | None:
    """Return the numbers of the detections that are there, None while nobody answers."""
    try:
        answer = stack.get("/extractbeacon", staff_id=staff_id, start_time=FIRST, end_time=LAST)
    except requests.ConnectionError:  # the gateway itself restarts
        return None
    if answer.status_code != 200:
        return None
    return [detection["timestamp"] - FIRST for detection in answer.json()["location"]]


def stored(stack: Stack, staff_id: int, number: int) -> bool:
    """Have a detection stored or queued; it may be asked again, since it is stored once."""
    try:
        answer = stack.detect(staff_id, event_id=f"e{number}", timestamp=FIRST + number)
    except requests.ConnectionError:
        return False
    return answer.status_code in (200, 202)


def works(stack: Stack, count: int) -> bool:
    """Tell whether detection number `count` can be stored, and all are there once."""
    return all(stored(stack, staff_id, count) for staff_id in STAFF) and all(
        numbers(stack, staff_id) == [*range(count, 0, -1)] for staff_id in STAFF
    )


@pytest.fixture
def count(stack: Stack) -> int:
    """Return the number of the next detection, when the last test's restart is over."""
    eventually(lambda: None not in [numbers(stack, staff_id) for staff_id in STAFF], HEAL_SECONDS)
    return len(numbers(stack, STAFF[0]) or []) + 1


@pytest.mark.parametrize("name", sorted(OURS | MONGO | ONE_SHOT))
def test_a_restarted_container_heals(stack: Stack, count: int, name: str) -> None:
    stack.compose("restart", name)
    eventually(lambda: works(stack, count), HEAL_SECONDS)


def test_a_killed_container_comes_back_by_itself(stack: Stack, count: int) -> None:
    killed = stack.pids()["shard1"]
    program = stack.program("shard1")
    os.kill(program, signal.SIGKILL)  # as the out-of-memory killer would; `docker kill` is a wish
    eventually(lambda: stack.pids().get("shard1", killed) != killed, HEAL_SECONDS)
    eventually(lambda: works(stack, count), HEAL_SECONDS)


def test_after_all_that_everything_is_healthy(stack: Stack) -> None:
    eventually(lambda: not stack.unhealthy(), HEALTHY_SECONDS)


def test_what_hangs_is_restarted(stack: Stack, count: int) -> None:
    """Short of memory, a mongod still listens and its container is still "Up"."""
    before = {name: pid for name, pid in stack.pids().items() if name in HANGING}
    for name in HANGING:
        os.kill(stack.program(name), signal.SIGSTOP)

    def restarted() -> bool:
        now = stack.pids()
        return all(now.get(name, pid) != pid for name, pid in before.items())

    eventually(restarted, HANG_SECONDS)
    eventually(lambda: works(stack, count), HEAL_SECONDS)


def queued(stack: Stack, number: int) -> bool:
    """Tell whether detection `number` of everybody went to a spool."""
    at = FIRST + number
    answers = [stack.detect(staff_id, event_id=f"e{number}", timestamp=at) for staff_id in STAFF]
    return {answer.status_code for answer in answers} == {202}


def queues(stack: Stack) -> dict[str, int]:
    """Return how many detections wait at each service that the gateway asks."""
    answers = [stack.get("/api/v1/system") for _ in range(16)]
    return {report["service"]: report["queued"] for report in (answer.json() for answer in answers)}


def test_what_was_taken_by_services_that_go_is_stored_by_those_that_stay(
    stack: Stack, count: int
) -> None:
    scale = ("up", "--detach", "--no-deps", "--no-recreate", "--no-build", "--scale")
    stack.compose(*scale, "ingest-2=3", "ingest-2")
    eventually(lambda: len(queues(stack)) == 4, HEAL_SECONDS)
    named = budget_rows(budget(stack, "--seconds", "1").stdout).keys()
    assert {"ingest-2", "ingest-2 (2)", "ingest-2 (3)"} < named
    stack.compose("stop", "mongos-1", "mongos-2")
    for number in range(count, count + QUEUED):
        eventually(functools.partial(queued, stack, number), HEAL_SECONDS)
    assert min(queues(stack).values()) > 0
    stack.compose(*scale, "ingest-2=1", "ingest-2")
    waiting = QUEUED * len(STAFF)  # what was repeated may wait twice

    def adopted() -> bool:
        now = queues(stack)
        return len(now) == 2 and sum(now.values()) >= waiting

    eventually(adopted, HEAL_SECONDS)
    stack.compose("start", "mongos-1", "mongos-2")
    eventually(lambda: works(stack, count + QUEUED), HEAL_SECONDS)
    eventually(lambda: set(queues(stack).values()) == {0}, HEAL_SECONDS)


def lacking(stack: Stack) -> list[str]:
    """Return the ingest services that are not on both of their networks."""
    starts = {
        name: container["NetworkSettings"]["Networks"]
        for name, container in stack.containers().items()
    }
    return [name for name in ("ingest-1", "ingest-2") if len(starts[name]) < 2]


def test_a_service_that_lacks_a_network_says_what_to_do(stack: Stack, count: int) -> None:
    """The gateway did not find them, and nothing told why; Docker Compose may leave it so."""
    container = stack.containers()["ingest-1"]
    for network in container["NetworkSettings"]["Networks"]:
        if network.endswith("_front"):
            stack.docker("network", "disconnect", network, container["Id"])
    assert lacking(stack) == ["ingest-1"]
    stack.compose("restart", "ingest-1")
    eventually(lambda: MISSING in stack.compose("logs", "ingest-1"))
    stack.compose("up", "--detach", "--force-recreate", "--no-deps", "ingest-1")
    assert lacking(stack) == []
    eventually(lambda: works(stack, count), HEAL_SECONDS)


def late(stack: Stack, name: str, folder: Path) -> Path:
    """Return a compose file with which a server starts when its container has a file /tmp/start."""
    written = json.loads(stack.compose("config", "--format", "json"))["services"][name]
    script = 'until [ -e /tmp/start ]; do sleep 1; done; exec "$$0" "$$@"'
    services = {name: {"entrypoint": ["sh", "-c", script, *written["entrypoint"]]}}
    file = folder / "late.yml"
    file.write_text(json.dumps({"services": services}))
    return file


def test_down_and_up_keep_data_secrets_and_what_waits_for_the_database(
    stack: Stack, count: int, tmp_path: Path
) -> None:
    def keyfile() -> str:
        return stack.compose("exec", "--no-TTY", "shard1", "sha256sum", "/secrets/keyfile")

    key = keyfile()
    assert count > 1
    stack.compose("stop", "mongos-1", "mongos-2")
    for number in range(count, count + QUEUED):
        eventually(functools.partial(queued, stack, number), HEAL_SECONDS)
    stack.compose("down")
    assert stack.compose("ps", "--all", "--quiet") == ""
    with stack.also(late(stack, "shard1", tmp_path)):  # the slowest machine
        stack.interrupt_up()
        assert (OURS | MONGO) - set(stack.pids())
        stack.compose("up", "--detach")
        if without := lacking(stack):
            eventually(
                lambda: all(MISSING in stack.compose("logs", service) for service in without)
            )
            stack.compose("up", "--detach", "--force-recreate")
        assert set(stack.pids()) >= OURS | MONGO
        eventually(lambda: stored(stack, STAFF[0], count), HEAL_SECONDS)
        stack.compose("kill", "ingest-2", "shard2")  # by hand: Docker lets them be
        stack.compose("up", "--detach")
        assert set(stack.pids()) >= OURS | MONGO
        stack.compose("exec", "--no-TTY", "shard1", "touch", "/tmp/start")
        stack.compose("up", "--detach", "--wait")
    stack.compose("up", "--detach", "--wait")  # shard1 as everybody has it
    eventually(lambda: not stack.unhealthy(), HEAL_SECONDS)  # who asked meanwhile was told of it
    eventually(lambda: works(stack, count + QUEUED), HEAL_SECONDS)
    assert keyfile() == key
    assert "created" not in stack.compose("logs", "mongo-init")
