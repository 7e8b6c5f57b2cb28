"""A real MongoDB cluster of any topology on this machine."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote, urlencode

from common.schema import DATABASE
from mongo import secrets
from mongo.binaries import find_binaries
from mongo.bootstrap import bootstrap
from mongo.servers import Server, servers
from mongo.topology import Topology
from scripts.processes import ROOT
from scripts.processes.ports import free_block
from scripts.processes.process import Process

DIRECTORY = ROOT / "mongo" / "directory.csv"
BOOTSTRAP_SECONDS = 360.0  # emulated servers on a busy machine


def connection_string(local: Topology, router: int = 0, login: str = "", **options: str) -> str:
    """Return how a driver connects: to one of the routers, or without any to the replica set."""
    if local.routers:
        hosts = local.routers[router % len(local.routers)]
    else:
        hosts = ",".join(local.users_set.members)
        options["replicaSet"] = local.users_set.name
    return f"mongodb://{login}{hosts}/?{urlencode(options)}"


class Cluster:
    """The servers of a topology, each a child of this process; `folder` has all their data.

    As a context manager it starts them, and at the end kills them and deletes the folder.
    """

    def __init__(self, topology: Topology, folder: Path) -> None:
        self.topology = topology
        self.folder = folder
        self.first_port = free_block()
        secrets.ensure(folder / "secrets")
        self.secrets = secrets.Secrets.read(folder / "secrets")
        self._processes: dict[str, Process] = {}

    def __enter__(self) -> Self:
        """Start all servers."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all servers and delete their data."""
        for name in list(self._processes):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def local(self) -> Topology:
        """The topology with the addresses on this machine."""
        return self.topology.on_this_machine(self.first_port)

    def servers(self) -> dict[str, Server]:
        """Return how each server of the topology is run, by name."""
        binaries = find_binaries(sharded=bool(self.topology.shards))
        keyfile = self.folder / "secrets" / secrets.KEYFILE
        all_servers = servers(self.topology, self.first_port, binaries, self.folder, keyfile)
        return {server.name: server for server in all_servers}

    def start(self, *names: str) -> None:
        """Start the named servers, or all that do not run; `bootstrap` waits for them."""
        for name, server in self.servers().items():
            if name in self._processes or (names and name not in names):
                continue
            self._processes[name] = Process(name, server.command, self.folder / f"{name}.log")
            self._processes[name].start()

    def process(self, name: str) -> Process:
        """Return a server that was started and not killed."""
        return self._processes[name]

    def kill(self, name: str) -> None:
        """Kill -9 a server; its data stay."""
        self._processes.pop(name).kill()

    def send_signal(self, name: str, number: int) -> None:
        """Send a server a signal."""
        self._processes[name].send_signal(number)

    @contextmanager
    def away(self, name: str, fault: Literal["killed", "frozen"]) -> Iterator[None]:
        """Keep a server killed or frozen for as long as the context lasts."""
        if fault == "killed":
            self.kill(name)
        else:
            self.send_signal(name, signal.SIGSTOP)
        try:
            yield
        finally:
            if fault == "killed":
                self.start(name)
            else:
                self.send_signal(name, signal.SIGCONT)

    def bootstrap(
        self, beacons: Path | None = None, deadline_seconds: float = BOOTSTRAP_SECONDS
    ) -> list[str]:
        """Bring the cluster to its topology; return what was done. Raises NotInTimeError."""
        steps: list[str] = []
        done = steps.append
        bootstrap(self.local, self.secrets, beacons, done, deadline_seconds=deadline_seconds)
        return steps

    def uri(self, router: int = 0, user: str = secrets.APP_USER) -> str:
        """Return a connection string with the password of a user."""
        password, source = self.secrets.app_password, DATABASE
        if user == secrets.ADMIN_USER:
            password, source = self.secrets.admin_password, "admin"
        login = f"{user}:{quote(password, safe='')}@"
        return connection_string(self.local, router, login, authSource=source)

    @contextmanager
    def running(self, beacons: Path | None = None) -> Iterator[Self]:
        """Start and bootstrap it; it ends with the context."""
        with self:
            self.bootstrap(beacons)
            yield self
