"""up, down and status, as a person uses them, and after every kind of sudden death."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes.health import TIMEOUT_SECONDS
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.stack.conftest import Stack, kill_tree
from tests.stack.test_verdict import frozen

PARTS = {"mongod", "ingest-1", "ingest-2", "monitoring", "gateway"}


def left_of(stack: Stack) -> list[psutil.Process]:
    """Return what still runs inside this stack's folder or names it."""
    folder = str(stack.data)
    return [
        process
        for process in psutil.process_iter(["cwd", "cmdline"])
        if any(
            folder in word for word in [process.info["cwd"] or "", *(process.info["cmdline"] or [])]
        )
    ]


def guards(stack: Stack) -> list[psutil.Process]:
    """Return what waits for the end of supervisord."""
    return [
        process
        for process in left_of(stack)
        if "--again" in process.cmdline() and process.name() == "sh"
    ]


@pytest.fixture
def anywhere(fresh: Stack) -> Iterator[Stack]:
    """Return a stack in a folder of any name, on a short path, for the sake of the sockets."""
    with tempfile.TemporaryDirectory() as folder:
        fresh.data = Path(folder) / "a %20%(x)s 'q' \"r\" #c ;d, $HOME {e} \\"
        yield fresh
        fresh.down()  # before its folder goes: nobody would find it then


@pytest.mark.long
def test_four_services_take_four_ports_and_nothing_else(fresh: Stack) -> None:
    """The gateway uses all of them, the page tells of all of them, and any one is enough."""
    names = {f"ingest-{number}" for number in range(1, 5)}
    fresh.environment["WAYMARK_INGEST_PORTS"] = " ".join(str(free_port()) for _ in names)
    fresh.up()
    assert names < fresh.pids().keys()

    def answering() -> set[str]:
        services = fresh.get("/monitoring/api/system").json()["services"]
        return {service["name"] for service in services if service["answers"]}

    def is_stored() -> bool:
        return fresh.detect("left").status_code == 200

    def used() -> set[str]:
        assert fresh.detect(1).status_code == 200
        lines = (fresh.data / "log" / "requests.log").read_text().splitlines()
        return {json.loads(line)["upstream"] for line in lines if "newbeacondetect" in line}

    eventually(lambda: answering() == names, 60)
    eventually(lambda: len(used()) == len(names), 60)
    for name in sorted(names)[:3]:
        fresh.supervisorctl("stop", name)
        # The gateway tries three: of four, the last may be found with the next request alone.
        eventually(is_stored, 60)
    eventually(lambda: answering() == {"ingest-4"}, 60)
    assert [row["location"] for row in fresh.history("left")] == 3 * ["Team 6 Beacon 1"]


@pytest.mark.long
def test_a_life_in_a_folder_of_any_name(anywhere: Stack) -> None:
    fresh = anywhere
    assert fresh.down().startswith("nothing was ever started")
    output = fresh.up()
    assert f"{fresh.url}/monitoring" in output
    assert "other machines" not in output
    assert "57 added" in output
    assert fresh.detect(90).status_code == 200
    pids = fresh.pids()
    assert set(pids) == PARTS

    again = fresh.up()
    assert again.count("running on 127.0.0.1") == len(PARTS)
    assert fresh.pids() == pids
    status = fresh.script("status")
    assert status.returncode == 0, status.stdout
    for column in ("part", "port", "memory", "health", "MiB", "ok"):
        assert column in status.stdout

    elsewhere = fresh.script("up", "--detach", "--port", free_port())
    assert elsewhere.returncode == 1
    assert elsewhere.stderr.count("\n") == 1
    assert "./scripts/down first" in elsewhere.stderr

    fresh.up("--demo")
    assert set(fresh.pids()) == PARTS | {"demo"}

    began = time.monotonic()
    assert fresh.down() == "stopped"
    assert time.monotonic() - began < 28  # a part that does not end is killed after 30
    assert left_of(fresh) == []
    assert fresh.down() == "nothing was running"
    assert fresh.script("status").returncode == 1

    began = time.monotonic()
    assert "57 added" not in fresh.up()
    assert time.monotonic() - began < 45
    assert len(fresh.history(90)) == 1


@pytest.mark.long
def test_every_part_comes_back_after_kill_9(fresh: Stack) -> None:
    fresh.up()
    for sent, name in enumerate(sorted(PARTS), start=1):
        assert fresh.detect(1, event_id=name).status_code == 200
        kill_tree(fresh.pids()[name])
        fresh.up()
        assert fresh.script("status").returncode == 0
        eventually(lambda: fresh.get("/retrieveformonitoring").status_code == 200, 60)
        assert len(fresh.history(1)) == sent
    # The masters alone: their orphaned workers must not keep the ports.
    for name in ("ingest-1", "monitoring", "gateway"):
        killed = fresh.pids()[name]
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: fresh.pids().get(name, killed) != killed, 90)  # noqa: B023
        eventually(lambda: fresh.script("status").returncode == 0, 90)
    assert len(fresh.history(1)) == len(PARTS)


@pytest.mark.long
def test_nothing_outlives_a_killed_supervisor(fresh: Stack) -> None:
    fresh.up("--demo")
    fresh.supervisorctl("stop", "guard")
    os.kill(fresh.supervisor_pid(), signal.SIGKILL)
    assert fresh.down() in ("stopped", "nothing was running")
    assert left_of(fresh) == []


@pytest.mark.long
def test_a_killed_supervisor_comes_back_by_itself(fresh: Stack) -> None:
    """With all parts, one of them frozen; and down ends what is just starting them again."""
    fresh.up()
    for number in range(2):
        assert fresh.detect(99, event_id=number).status_code == 200
        eventually(lambda: len(guards(fresh)) == 1, 60)  # that of before ends when all is there
        (guard,) = guards(fresh)
        guard.kill()  # supervisord starts it again
        killed = fresh.supervisor_pid()
        eventually(lambda: guards(fresh) not in ([], [guard]), 60)  # noqa: B023
        os.kill(fresh.pids()["ingest-1"], signal.SIGSTOP)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: fresh.supervisor_pid() != killed, 60)  # noqa: B023
        if number:
            break
        eventually(lambda: guards(fresh) and fresh.script("status").returncode == 0, 120)
        assert len(fresh.history(99)) == 1
    assert fresh.down() == "stopped"
    assert left_of(fresh) == []
    fresh.up()
    assert len(fresh.history(99)) == 2


@pytest.mark.long
def test_a_supervisor_that_hangs_is_named_and_ended(fresh: Stack) -> None:
    fresh.up()
    assert fresh.detect(99).status_code == 200
    os.kill(fresh.supervisor_pid(), signal.SIGSTOP)
    status = fresh.script("status")
    assert status.returncode == 1
    assert f"`kill -CONT {fresh.supervisor_pid()}`" in status.stderr
    assert "./scripts/down" in status.stderr
    assert fresh.down().endswith("stopped")
    assert left_of(fresh) == []
    fresh.up()
    assert len(fresh.history(99)) == 1


@pytest.mark.long
def test_several_parts_that_hang_cost_status_no_more_than_one(fresh: Stack) -> None:
    fresh.up()

    def seconds_with(*hanging: str) -> float:
        with frozen(fresh, *hanging):
            began = time.monotonic()
            status = fresh.script("status")
            seconds = time.monotonic() - began
        assert status.returncode == 1
        rows = [line for line in status.stdout.splitlines() if "does not answer" in line]
        assert [row.split()[0] for row in rows] == [*hanging]
        return seconds

    alone = seconds_with("gateway")
    assert alone >= TIMEOUT_SECONDS
    together = seconds_with("ingest-1", "ingest-2", "monitoring", "gateway")
    assert together - alone < 2 * TIMEOUT_SECONDS


@pytest.mark.long
def test_ctrl_c_stops_a_stack_in_the_foreground(fresh: Stack) -> None:
    # Whoever runs the tests in the background has Ctrl-C ignored, and so would what they start.
    command = ["env", "--default-signal=INT", f"{fresh.root}/scripts/up"]
    command += ["--port", str(fresh.port), "--data", str(fresh.data)]
    with subprocess.Popen(command, env=fresh.environment, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout
            assert any("Ctrl-C" in line for line in up.stdout)
            assert fresh.get("/healthz").status_code == 200
            up.send_signal(signal.SIGINT)
            assert any("stopping" in line for line in up.stdout)
            up.send_signal(signal.SIGINT)  # impatience leaves nothing behind
            assert up.wait(60) == 0
        finally:
            up.kill()
    assert left_of(fresh) == []


def test_a_taken_port_is_named_and_nothing_stays(fresh: Stack) -> None:
    taken = int(fresh.environment["WAYMARK_MONITORING_PORT"])
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken))
        other.listen()
        failed = fresh.script("up", "--detach", "--port", fresh.port)
        assert failed.returncode == 1
        line = failed.stderr.strip()
        assert line.startswith(f"up: monitoring needs port {taken}, which is taken by ")
        assert "\n" not in line
        assert str(os.getpid()) in line
        assert left_of(fresh) == []


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("WAYMARK_MONGOD_PORT", "70000", "70000 is no port"),
        ("WAYMARK_MONITORING_PORT", "web", "is not a number"),
        ("WAYMARK_INGEST_PORTS", "", "names no port"),
        ("WAYMARK_INGEST_PORTS", "5001 5001", "port 5001 is given to two parts"),
    ],
)
def test_impossible_ports_are_named(fresh: Stack, variable: str, value: str, message: str) -> None:
    fresh.environment[variable] = value
    failed = fresh.script("up", "--detach", "--port", fresh.port)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert failed.stderr.startswith("up: ")
    assert message in failed.stderr
    assert left_of(fresh) == []


@pytest.mark.long
def test_a_part_that_cannot_start_is_named_and_nothing_stays(fresh: Stack, tmp_path: Path) -> None:
    broken = tmp_path / "mongod"
    broken.write_text("#!/bin/sh\nsleep 2\necho 'the disk is on fire'\nexit 1\n")
    broken.chmod(0o755)
    fresh.environment["MONGODB_BIN"] = str(tmp_path)
    failed = fresh.script("up", "--detach", "--port", fresh.port)
    assert failed.returncode == 1
    log = fresh.data / "log" / "mongod.log"
    assert failed.stderr == f"up: mongod did not start: the disk is on fire [{log}]\n"
    assert failed.stderr.count("\n") == 1
    assert left_of(fresh) == []


@pytest.mark.long
def test_damaged_files_of_the_database_are_named_at_once(fresh: Stack) -> None:
    fresh.up()
    fresh.down()
    (fresh.data / "mongod" / "WiredTiger.turtle").write_bytes(b"\0" * 1000)
    began = time.monotonic()
    failed = fresh.script("up", "--detach", "--port", fresh.port)
    assert time.monotonic() - began < 90  # three tries; the database alone may take 180 s
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert failed.stderr.startswith("up: mongod did not start: ")
    assert "WiredTiger" in failed.stderr
    assert failed.stderr.endswith(f" [{fresh.data}/log/mongod.log]\n")
    assert left_of(fresh) == []


@pytest.mark.long
def test_a_service_that_cannot_start_is_named_with_its_reason(fresh: Stack) -> None:
    fresh.environment["SPOOL_MAX_DETECTIONS"] = "many"
    failed = fresh.script("up", "--detach", "--port", fresh.port)
    assert failed.returncode == 1
    assert failed.stderr.startswith("up: ingest-1 did not start: ")
    assert "SPOOL_MAX_DETECTIONS must be" in failed.stderr
    assert failed.stderr.endswith(f" [{fresh.data}/log/ingest-1.log]\n")
    assert left_of(fresh) == []


@pytest.mark.long
def test_a_stack_whose_layout_was_lost_can_be_stopped(fresh: Stack) -> None:
    fresh.up("--demo")
    assert fresh.detect(98).status_code == 200
    layout = fresh.data / "run" / "layout.json"
    layout.write_text("")
    for command in ("status", "up"):
        failed = fresh.script(command)
        assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
        assert failed.stderr.startswith(f"{command}: {layout} is damaged: ./scripts/down, then")
    assert fresh.down().endswith("stopped")
    assert left_of(fresh) == []
    for text in ("[]", "{", '{"ingest_ports": 5001}', "{}"):
        layout.write_text(text)
        assert fresh.script("status").stderr.count("\n") == 1
        assert fresh.down().endswith("nothing was running")
    fresh.up()
    assert len(fresh.history(98)) == 1


def test_data_that_cannot_be_written_is_named(fresh: Stack) -> None:
    fresh.data.write_text("a file, not a folder")
    failed = fresh.script("up", "--detach", "--port", fresh.port)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert str(fresh.data) in failed.stderr
    fresh.data.unlink()
