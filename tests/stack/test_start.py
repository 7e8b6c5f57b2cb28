"""What `up` says of time, of what is gone, and of what it did not start itself."""

import json
import os
import signal
import subprocess
import xmlrpc.client
from pathlib import Path

import pytest

from scripts.native.layout import Layout, StackError
from scripts.native.supervisor import Supervisor
from scripts.processes.waiting import eventually
from tests.stack.conftest import Stack
from tests.stack.test_lifecycle import left_of

pytestmark = pytest.mark.long


def has_no_time(stack: Stack, *options: object) -> None:
    """Start a stack that may take no time, which says how to go on and leaves nothing behind."""
    failed = stack.script("up", "--detach", "--port", stack.port, *options, "--deadline", "0")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1), failed.stderr
    assert failed.stderr.startswith("up: after 0 s still no ")
    assert "./scripts/up once more goes on where this ended" in failed.stderr
    assert f"{stack.data}/log" in failed.stderr
    assert left_of(stack) == []


def test_a_start_that_takes_longer_than_it_may_goes_on_the_next_time(fresh: Stack) -> None:
    has_no_time(fresh)
    fresh.up()
    assert fresh.detect(1).status_code == 200


def test_a_lost_supervisord_ends_up_with_an_error(fresh: Stack) -> None:
    command = [f"{fresh.root}/scripts/up", "--port", str(fresh.port), "--data", str(fresh.data)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=fresh.environment, text=True, **pipes) as up:  # type: ignore[call-overload]
        assert any("Ctrl-C" in line for line in up.stdout)
        os.kill(fresh.supervisor_pid(), signal.SIGKILL)
        _, said = up.communicate(timeout=90)
    assert up.returncode == 1
    assert said.startswith("up: supervisord, which keeps the parts running, is gone")
    assert said.endswith(f"[{fresh.data}/log/supervisord.log]\n")
    assert left_of(fresh) == []


def test_of_a_lost_supervisord_status_says_so_and_up_starts_it_again(fresh: Stack) -> None:
    fresh.up()
    assert fresh.detect(7).status_code == 200
    fresh.supervisorctl("stop", "guard")
    os.kill(fresh.supervisor_pid(), signal.SIGKILL)
    status = fresh.script("status")
    assert (status.returncode, status.stderr.count("\n")) == (1, 1)
    assert "is gone: killed" in status.stderr
    fresh.up()
    assert len(fresh.history(7)) == 1
    assert fresh.down() == "stopped"
    assert "is not running" in fresh.script("status").stderr


def test_a_stack_that_ends_while_it_starts_is_no_riddle(fresh: Stack, tmp_path: Path) -> None:
    slow = tmp_path / "mongod"
    slow.write_text("#!/bin/sh\n[ $1 = --version ] || exec sleep 600\n")
    slow.chmod(0o755)
    fresh.environment["MONGODB_BIN"] = str(tmp_path)
    command = [f"{fresh.root}/scripts/up", "--detach", "--port", str(fresh.port)]
    command += ["--data", str(fresh.data)]
    with subprocess.Popen(command, env=fresh.environment, stderr=subprocess.PIPE, text=True) as up:
        pid = eventually(lambda: starting(fresh), 60)
        os.kill(pid, signal.SIGKILL)
        _, said = up.communicate(timeout=90)
    assert up.returncode == 1
    assert (said.count("\n"), said.startswith("up: supervisord")) == (1, True), said
    assert left_of(fresh) == []


def starting(stack: Stack) -> int:
    """Return the pid of a supervisord that has a part already, else 0."""
    try:
        layout = Layout.saved(stack.data)
        if layout and Supervisor(layout).info("mongod")["pid"]:
            return stack.supervisor_pid()
    except (StackError, xmlrpc.client.Fault):  # it is not there yet
        return 0
    return 0


def older(layout: Path) -> None:
    """Make it that of a checkout whose topology file has gone since."""
    values = json.loads(layout.read_text())
    values["topology"] = str(layout.parent / "gone.toml")
    layout.write_text(json.dumps(values))


def test_a_stack_of_an_older_checkout_is_told_and_stopped_in_order(
    fresh: Stack, tmp_path: Path
) -> None:
    fresh.up("--demo")
    assert fresh.detect(95).status_code == 200
    older(fresh.data / "run" / "layout.json")
    status = fresh.script("status")
    assert (status.returncode, status.stderr.count("\n")) == (1, 1), status.stderr
    again = fresh.script("up", "--detach", "--port", fresh.port)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1), again.stderr
    assert again.stderr.endswith(": ./scripts/down first\n")
    assert fresh.down() == "stopped"
    assert left_of(fresh) == []
    log = (fresh.data / "log" / "supervisord.log").read_text()
    assert log.index("stopped: ingest-2") < log.index("stopped: mongod")
    fresh.up()
    assert len(fresh.history(95)) == 1


def test_data_are_opened_by_their_release_and_the_next_alone(fresh: Stack, tmp_path: Path) -> None:
    said = fresh.up()
    assert "  database    MongoDB " in said
    assert "[/" in said.partition("  database    MongoDB ")[2].splitlines()[0]
    fresh.down()
    mark = fresh.data / "mongod" / "made-by-mongodb"
    made = mark.read_text()
    server = tmp_path / "mongod"
    for release, opens in ((0, True), (1, True), (2, False), (-1, False)):
        number = f"{int(made.partition('.')[0]) + release}.0.9"
        # It ends at once where it is started.
        server.write_text(f"#!/bin/sh\necho 'db version v{number}'\n[ $1 = --version ]\n")
        server.chmod(0o755)
        fresh.environment["MONGODB_BIN"] = str(tmp_path)
        failed = fresh.script("up", "--detach", "--port", fresh.port)
        assert failed.returncode == 1
        started = failed.stderr.startswith("up: mongod did not start")
        assert started == opens, failed.stderr
        if not opens:
            assert failed.stderr.startswith(f"up: MongoDB {made} made {mark.parent}, and a server")
            assert f"not MongoDB {number}, of MONGODB_BIN [{tmp_path}]" in failed.stderr
    assert mark.read_text() == made
    del fresh.environment["MONGODB_BIN"]
    fresh.up()
