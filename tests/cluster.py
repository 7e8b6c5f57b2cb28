"""A real MongoDB cluster of any topology for tests: started, bootstrapped, killed, stopped."""

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from pymongo import MongoClient

from ingest.config import Config
from mongo import secrets, topology
from mongo.binaries import find_binaries
from mongo.bootstrap import bootstrap
from mongo.servers import Server, servers
from tests.ports import free_block

Client = MongoClient[dict[str, Any]]


class Cluster:
    """The servers of a topology on this machine, each a child of this process."""

    def __init__(self, named: topology.Topology, folder: Path) -> None:
        self.folder = folder
        self.named = named
        self.first_port = free_block()
        secrets.ensure(folder / "secrets")
        self.secrets = secrets.Secrets.read(folder / "secrets")
        self.said: list[str] = []
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def local(self) -> topology.Topology:
        return self.named.on_this_machine(self.first_port)

    def servers(self) -> dict[str, Server]:
        binaries = find_binaries(sharded=bool(self.named.shards))
        keyfile = self.folder / "secrets" / secrets.KEYFILE
        every = servers(self.named, self.first_port, binaries, self.folder, keyfile)
        return {server.name: server for server in every}

    def start(self, *names: str) -> None:
        """Start the named servers, or all that do not run."""
        for name, server in self.servers().items():
            if name in self._running or (names and name not in names):
                continue
            with (self.folder / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(server.command, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def send_signal(self, name: str, number: int) -> None:
        self._running[name].send_signal(number)

    def bootstrap(self, beacons: Path | None = None, deadline_seconds: float = 360) -> list[str]:
        """Bring the cluster to its topology; return what was done."""
        said: list[str] = []
        bootstrap(self.local, self.secrets, beacons, said.append, deadline_seconds=deadline_seconds)
        return said

    def uri(self, router: int = 0, user: str = secrets.APP_USER) -> str:
        """Return a connection string with its password."""
        password = self.secrets.app_password if user == secrets.APP_USER else ""
        source = "ICT3102"
        if user == secrets.ADMIN_USER:
            password, source = self.secrets.admin_password, "admin"
        login = f"mongodb://{user}:{quote(password, safe='')}@"
        if self.local.routers:
            return f"{login}{self.local.routers[router]}/?authSource={source}"
        members = ",".join(self.local.users_set.members)
        return f"{login}{members}/?authSource={source}&replicaSet={self.local.users_set.name}"

    def service(self, router: int = 0, timeout_ms: int = 10_000) -> Config:
        """Return the settings of an ingest service on this cluster, with a spool of its own."""
        spool = str(self.folder / f"{uuid.uuid4().hex}.db")
        uri = self.uri(router)
        return Config(mongodb_uri=uri, mongodb_timeout_ms=timeout_ms, spool_file=spool)

    @contextmanager
    def running(self, beacons: Path | None = None) -> Iterator[Self]:
        """Start and bootstrap it; it ends with the context."""
        try:
            self.start()
            self.bootstrap(beacons)
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        for name in list(self._running):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)
