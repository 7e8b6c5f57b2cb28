"""Hosts with engines of their own, on one machine: each in namespaces that end as one.

A host has its own network, processes, mounts and name. So its loss is that of a machine: its
engine, all containers and its member of the database are gone at once, and no connection is closed.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from scripts.processes.waiting import eventually
from tests.docker.engine import NETWORKS, Docker


def address(number: int) -> str:
    """Return where the host of a number is."""
    return f"10.212.0.{number}"


# What joins the hosts is in a namespace of its own: here an engine's rules would drop their frames.
HUB, BRIDGE, CABLE = "waymark-hub", "hosts", "way-here"
HERE = address(254)
START_SECONDS = 60.0
# The first process of a host: all others end with it.
# Its names are asked of nobody, so that no engine waits for a registry.
FIRST = """
hostname "$0" && mount -t proc proc /proc && mount --bind "$1" /etc/resolv.conf
exec sleep infinity
"""


@contextmanager
def network() -> Iterator[None]:
    """Make what joins the hosts with each other and with the test."""
    _ip("netns", "delete", HUB, check=False)  # of a run that was killed
    _ip("netns", "add", HUB)
    try:
        _ip("-n", HUB, "link", "add", "name", BRIDGE, "type", "bridge")
        _ip("-n", HUB, "link", "set", BRIDGE, "up")
        _plug(CABLE)
        _ip("address", "add", f"{HERE}/24", "dev", CABLE)
        _ip("link", "set", CABLE, "up")
        yield
    finally:
        _ip("netns", "delete", HUB)


def _plug(cable: str) -> None:
    """Make a cable from here to what joins all."""
    _ip("link", "delete", cable, check=False)
    _ip("link", "add", cable, "type", "veth", "peer", "name", cable, "netns", HUB)
    _ip("-n", HUB, "link", "set", cable, "master", BRIDGE, "up")


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True)


class Host:
    """A machine with an engine; `data` is its disk."""

    def __init__(self, number: int, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = f"host{number}"
        self.address = address(number)
        self.folder = folder / self.name
        self.data = self.folder / "data"
        self._network = f"waymark-{self.name}"
        self._socket = folder / f"{self.name}.sock"
        self.docker = Docker(dict(environment) | {"DOCKER_HOST": f"unix://{self._socket}"})
        self._first: subprocess.Popen[bytes] | None = None
        self._others: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start it with its engine; what its disk has, it has again."""
        self.data.mkdir(parents=True, exist_ok=True)
        self._wire()
        unshared = ["unshare", "--uts", "--pid", "--mount", "--ipc", "--fork"]
        inside = ["nsenter", f"--net=/run/netns/{self._network}", *unshared]
        names = self.folder / "resolv.conf"
        names.write_text("nameserver 127.0.0.1\n")
        self._first = subprocess.Popen([*inside, "sh", "-ec", FIRST, self.name, str(names)])
        eventually(self._has_name, START_SECONDS)
        settings = self.folder / "daemon.json"
        settings.write_text(json.dumps({"bridge": "none"}))
        self.run(
            "dockerd",
            *("dockerd", "--config-file", str(settings), "--pidfile", f"{self.folder}/docker.pid"),
            *("--host", f"unix://{self._socket}", "--log-level", "warn"),
            *("--data-root", f"{self.data}/docker", "--exec-root", f"{self.folder}/exec"),
            *("--default-address-pool", NETWORKS, "--cgroup-parent", f"/waymark-{self.name}"),
            *("--exec-opt", "native.cgroupdriver=cgroupfs"),
        )
        version = ("version", "--format", "{{.Server.Version}}")
        eventually(lambda: self.docker.run(*version).returncode == 0, START_SECONDS)

    def run(self, name: str, *command: str) -> None:
        """Start a program on it, which ends when the host does."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._others.append(
                subprocess.Popen(
                    [*self._enter(), *command],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    env=self.docker.environment,
                )
            )

    def lose(self) -> None:
        """End it at once, with its network: nobody is told."""
        if self._first:
            _ip("-n", HUB, "link", "delete", self._cable, check=False)
            for pid in _children(self._first.pid):
                os.kill(pid, signal.SIGKILL)
            for process in (self._first, *self._others):
                process.wait(START_SECONDS)
            self._first, self._others = None, []
        _ip("netns", "delete", self._network, check=False)

    def lose_disk(self) -> None:
        """Delete all that it had."""
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """End it, and leave nothing of it."""
        self.lose()
        for group in Path("/sys/fs/cgroup").glob(f"*/waymark-{self.name}"):
            for folder in sorted(group.rglob("*/"), reverse=True):
                with suppress(OSError):
                    folder.rmdir()
            group.rmdir()

    @property
    def _cable(self) -> str:
        return f"way-{self.name}"

    def _wire(self) -> None:
        _ip("netns", "delete", self._network, check=False)  # of a run that was killed
        _ip("netns", "add", self._network)
        _plug(self._cable)
        _ip("link", "set", self._cable, "netns", self._network, "name", "eth0")
        for change in (
            ("address", "add", f"{self.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", HERE),
        ):
            _ip("-n", self._network, *change)

    def _has_name(self) -> bool:
        assert self._first
        if not _children(self._first.pid):
            return False
        done = subprocess.run([*self._enter(), "hostname"], check=False, capture_output=True)
        return done.stdout.decode().strip() == self.name

    def _enter(self) -> list[str]:
        assert self._first
        (first,) = _children(self._first.pid)
        return ["nsenter", f"--target={first}", "--net", "--uts", "--pid", "--mount", "--ipc"]


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]
