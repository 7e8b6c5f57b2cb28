"""Root may start the stack; nothing of it then is root."""

import itertools
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes import ports
from scripts.processes.waiting import eventually
from tests.needs import only_root
from tests.stack.conftest import Stack
from tests.stack.test_lifecycle import PARTS, left_of

pytestmark = [
    pytest.mark.long,
    only_root,
]
BIND = 1 << 10  # the capability to listen on a port below 1024


@pytest.fixture(scope="module")
def prefix(root: Path) -> Iterator[list[str]]:
    """Return what to run commands in so that every user may reach this Python and this checkout."""
    ways = [Path(sys.executable).resolve(), Path(sys.prefix).resolve(), root]
    closed = {
        (parent, child)
        for way in ways
        for parent, child in zip(way.parents, [way, *way.parents], strict=False)
        if not parent.stat().st_mode & 1
    }
    with tempfile.TemporaryDirectory() as aside:
        # In its place an open folder with nothing but the next one on the way.
        mounts = [
            f"mount --bind {child} {aside} && mount -t tmpfs -o mode=755 open {parent} && "
            f"mkdir {child} && mount --move {aside} {child}"
            for parent, child in closed
        ]
        script = " && ".join([*mounts, "echo mounted", "exec cat"])
        command = ["unshare", "--mount", "sh", "-c", script]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout
            assert holder.stdout.readline() == b"mounted\n"
            yield ["nsenter", f"--target={holder.pid}", "--mount"]
            holder.communicate()


@pytest.fixture
def stack(root: Path, prefix: list[str]) -> Iterator[Stack]:
    """Return a stack that is not started yet, in a folder that every user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        stack = Stack(root, Path(folder) / "data", prefix)
        yield stack
        stack.down()


def users(stack: Stack) -> set[str]:
    """Return whom the processes of a stack run as, by every id that they have."""
    processes = left_of(stack)
    assert len(processes) > len(PARTS)
    return {pwd.getpwuid(uid).pw_name for process in processes for uid in set(process.uids())}


def capabilities(pid: int) -> set[int]:
    """Return the sets of capabilities of a process that are in force or may be."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    assert status["NoNewPrivs"] == "1"
    assert status["Groups"].strip() in ("", status["Gid"].split()[0])
    return {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}


def test_nothing_is_root_not_even_on_a_port_that_only_root_may_open(stack: Stack) -> None:
    stack.port = next(port for port in range(700, 1024) if ports.is_free(port))
    stack.url = f"http://127.0.0.1:{stack.port}"
    assert "WARNING" not in stack.up("--demo")
    assert users(stack) == {"waymark"}
    assert stack.detect(1).status_code == 200
    pids = stack.pids()
    assert set(pids) == PARTS | {"demo"}
    for name, pid in pids.items():
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            assert capabilities(process.pid) == {BIND if name == "gateway" else 0}
    owned = {file: file.stat() for file in (stack.data / "secrets").iterdir()}
    assert {pwd.getpwuid(stat.st_uid).pw_name for stat in owned.values()} == {"waymark"}
    assert {stat.st_mode & 0o777 for stat in owned.values()} == {0o400}
    for name in ("run", "log", "secrets", "spool", "mongod"):
        assert (stack.data / name).stat().st_mode & 0o077 == 0
    assert stack.data.owner() == "root"  # or `waymark` could put a link where root opens a file

    stack.up()
    assert stack.pids() == pids
    assert stack.script("status").returncode == 0
    assert stack.down() == "stopped"
    assert left_of(stack) == []


def test_what_ran_as_root_is_taken_over(stack: Stack) -> None:
    stack.data.mkdir(mode=0o700)
    warning = f"  WARNING: everything runs as root: the user waymark may not read {stack.data}\n"
    assert warning in stack.up()
    assert users(stack) == {"root"}
    assert stack.detect(1).status_code == 200

    stack.data.chmod(0o755)
    assert "not started as the user waymark: ./scripts/down first\n" in stack.up()
    assert users(stack) == {"root"}
    os.kill(stack.supervisor_pid(), signal.SIGKILL)  # and what a crash leaves is root's
    # It comes back by itself, as the user's.
    eventually(lambda: stack.script("status").returncode == 0, 120)
    assert users(stack) == {"waymark"}
    assert len(stack.history(1)) == 1
    assert stack.detect(1).status_code == 200


def test_a_key_that_only_root_may_read_is_named_and_one_in_the_data_is_given(stack: Stack) -> None:
    def made_in(folder: Path) -> None:
        make = [f"{stack.root}/scripts/certificate", str(folder)]
        subprocess.run(make, check=True, capture_output=True)
        files = {"CERTIFICATE": folder / "certificate.pem", "KEY": folder / "key.pem"}
        stack.environment |= {f"GATEWAY_TLS_{name}": str(file) for name, file in files.items()}

    for name in ("TLS", "INTERNAL"):
        stack.environment[f"GATEWAY_{name}_LISTEN"] = f"127.0.0.1:{ports.free_port()}"
    elsewhere = stack.data.parent / "tls"
    made_in(elsewhere)
    assert f"the user waymark may not read {elsewhere}/key.pem\n" in stack.up()
    assert stack.down() == "stopped"

    made_in(stack.data / "tls")
    (stack.data / "tls").chmod(0o700)
    command = [*stack.prefix, "env", "--default-signal=INT", f"{stack.root}/scripts/up"]
    command += ["--port", str(stack.port), "--data", str(stack.data)]
    with subprocess.Popen(command, env=stack.environment, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout
            said = list(itertools.takewhile(lambda line: "Ctrl-C" not in line, up.stdout))
            assert "WARNING" not in "".join(said)
            assert users(stack) == {"waymark"}  # `up` itself, which stays, as well
            up.send_signal(signal.SIGINT)
            assert up.wait(60) == 0
        finally:
            up.kill()


def test_root_of_a_namespace_without_other_users_is_told_so(root: Path, tmp_path: Path) -> None:
    stack = Stack(root, tmp_path / "data", ["unshare", "--user", "--map-root-user"])
    try:
        assert "  WARNING: everything runs as root: setpriv: " in stack.up()
        assert stack.detect(1).status_code == 200
    finally:
        stack.down()
