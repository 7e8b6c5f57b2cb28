"""The architecture before, as processes on this machine; also in place of a part of the new one."""

import os
import sys
from functools import partial
from typing import Any
from urllib.parse import quote

from pymongo import MongoClient

from common.schema import DATABASE, HISTORY, STAFF
from gateway.start import find_nginx
from loadtests.stack import Stack, health_of
from mongo import secrets, topology
from mongo.binaries import find_binaries
from mongo.bootstrap import bootstrap
from mongo.directory import parse
from mongo.servers import servers
from mongo.topology import FOLDER
from scripts.processes import ROOT
from scripts.processes.cluster import BOOTSTRAP_SECONDS, DIRECTORY, connection_string
from scripts.processes.control_groups import SERVICE, Limits
from scripts.processes.health import mongodb_problem
from scripts.processes.ports import free_block, free_port
from scripts.processes.process import Process

NGINX = ROOT / "loadtests" / "baseline" / "nginx.conf.template"


class Old(Stack):
    """The architecture before: one mongod, sync workers, round robin NGINX (loadtests/baseline).

    `unoptimised` is the original's first query; `durable` answers an insert only when it is on the
    disk, as the new architecture does and the source did not. `indexed` adds the new one's index
    of histories, to tell what that alone gains. `separated` gives the page a service of its own.
    `shards` has so many, each with the index of its shard key alone, and a router for each service;
    0 is one mongod of their build, emulated where that is. `indented` answers as Flask's pretty
    print did.
    """

    def __init__(
        self,
        *,
        unoptimised: bool = False,
        durable: bool = False,
        indexed: bool = False,
        separated: bool = False,
        shards: int | None = None,
        indented: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(**how)
        self._indexed, self._shards = indexed, shards
        self._monitoring_port = free_port() if separated else 0
        self._application = f"create_app(unoptimised={unoptimised}, indented={indented})"
        waits = "?journal=true" if durable else ""
        self._uris = [f"mongodb://127.0.0.1:{self.mongod_port}/{waits}"]

    @property
    def mongodb_uri(self) -> str:
        """How the services reach the database."""
        return self._uris[0]

    def _start(self) -> None:
        if self._shards:
            self._start_cluster(self._shards)
        else:
            self._start_mongod()
        started = {}
        for number, port in enumerate(self.ingest_ports, start=1):
            name = f"ingest-{number}"  # named as its successor, to be compared with it
            uri = self._uris[(number - 1) % len(self._uris)]
            started[port] = self._run(name, old_service(port, self._application), uri)
        if port := self._monitoring_port:
            started[port] = self._run("monitoring", old_service(port, self._application))
        started[self.gateway_port] = self._run("gateway", old_gateway(self, self._monitoring_port))
        for port, process in started.items():
            process.wait_until_healthy(health_of(port))

    def _start_mongod(self) -> None:
        (self.folder / "mongod").mkdir()
        options = ["--bind_ip", "127.0.0.1", "--port", str(self.mongod_port), "--dbpath", "mongod"]
        program = [mongod_of(sharded=self._shards == 0), "--config", str(FOLDER / "mongod.conf")]
        mongod = self._run("mongod", [*program, *options])
        mongod.wait_until_healthy(partial(mongodb_problem, self.mongod_port))
        with MongoClient[dict[str, Any]](self.mongodb_uri) as client:
            beacons = parse(DIRECTORY.read_text("utf-8"))
            client[DATABASE]["beacons"].insert_many([beacon.document() for beacon in beacons])
            if self._indexed:
                client[DATABASE]["staff"].create_index(HISTORY.keys)  # as the new one's

    def _start_cluster(self, shards: int) -> None:
        """Start the new architecture's cluster, and take away what the old one did not have."""
        file, folder, first = self.folder / "topology.toml", self.folder / "secrets", free_block()
        file.write_text(topology_of(shards))
        secrets.ensure(folder)
        known, named = secrets.Secrets.read(folder), topology.load(file)
        binaries, keyfile = find_binaries(sharded=True), folder / secrets.KEYFILE
        for server in servers(named, first, binaries, self.folder, keyfile):
            self._run(server.name, server.command)
        local = named.on_this_machine(first)
        bootstrap(local, known, DIRECTORY, lambda _: None, deadline_seconds=BOOTSTRAP_SECONDS)
        self._uris = [as_administrator(local, known, n) for n in range(len(local.routers))]
        with MongoClient[dict[str, Any]](self.mongodb_uri) as client:
            for index in STAFF.indexes:
                client[DATABASE][STAFF.name].drop_index(index.name)

    def _run(self, name: str, command: list[str], uri: str = "") -> Process:
        seen = old_environment(uri or self.mongodb_uri)
        return self._launch(name, command, seen, self.folder)

    def _limits(self, name: str) -> Limits:
        """Return what a part may use: a service of the page as much as the others."""
        return SERVICE if name == "monitoring" else super()._limits(name)


def topology_of(shards: int) -> str:
    """Return a topology file of so many shards, with a router for each of two services."""
    members = "\n".join(f'shard{n} = ["shard{n}:27018"]' for n in range(1, shards + 1))
    config = '[config]\nconfig = ["configsvr:27019"]'
    routers = '[routers]\nmongos = ["mongos-1:27017", "mongos-2:27017"]'
    return f"{config}\n[shards]\n{members}\n{routers}\n"


def mongod_of(*, sharded: bool) -> str:
    """Return the program, `sharded` of the build that shards have."""
    return str(find_binaries(sharded=sharded) / "mongod")


def as_administrator(local: topology.Topology, known: secrets.Secrets, router: int = 0) -> str:
    """Return how to reach a cluster on this machine as its administrator, by one of its routers."""
    login = f"{secrets.ADMIN_USER}:{quote(known.admin_password, safe='')}@"
    return connection_string(local, router, login=login, authSource="admin")


def old_gateway(stack: Stack, monitoring_port: int) -> list[str]:
    """Return the command of the old NGINX before a stack's services; port 0: it has no page's."""
    upstream = "; server ".join(f"127.0.0.1:{port}" for port in stack.ingest_ports)
    text = NGINX.read_text().replace("@{app}", upstream).replace("@{run}", str(stack.folder))
    pages = f"127.0.0.1:{monitoring_port}" if monitoring_port else "applications"
    text = text.replace("@{pages}", pages)
    configuration = stack.folder / "nginx.conf"
    configuration.write_text(text.replace("@{listen}", f"127.0.0.1:{stack.gateway_port}"))
    return [find_nginx(), "-e", "stderr", "-p", str(stack.folder), "-c", str(configuration)]


def old_service(port: int, application: str = "create_app()") -> list[str]:
    """Return the command that serves the old application on a port."""
    command = [sys.executable, "-m", "gunicorn", "--no-control-socket", "--log-level", "error"]
    return [*command, "--bind", f"127.0.0.1:{port}", f"loadtests.baseline.app:{application}"]


def old_environment(mongodb_uri: str) -> dict[str, str]:
    """Return what the old application sees."""
    ours = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "MONGODB_URI": mongodb_uri}
    return os.environ | ours
