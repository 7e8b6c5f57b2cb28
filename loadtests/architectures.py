"""What gets the load: this architecture, or a form of the old one, as processes on this machine."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from pymongo import MongoClient

from common.schema import DATABASE, HISTORY
from gateway.start import find_nginx
from loadtests.stack import Stack, health_of
from mongo import secrets, topology
from mongo.binaries import find_binaries
from mongo.bootstrap import bootstrap
from mongo.directory import parse
from mongo.topology import FOLDER
from scripts.native.layout import Layout
from scripts.native.parts import Part, environment, parts
from scripts.processes import ROOT
from scripts.processes.cluster import BOOTSTRAP_SECONDS, DIRECTORY, connection_string
from scripts.processes.control_groups import SERVICE, Limits
from scripts.processes.health import mongodb_problem
from scripts.processes.ports import free_block, free_port
from scripts.processes.process import Process

ANY_RATE = "1000000"  # requests/s of one client: here one address is everybody
NGINX = ROOT / "loadtests" / "baseline" / "nginx.conf.template"
PARTS = ("ingest-1", "ingest-2", "gateway", "mongod", "monitoring")  # the old one lacks the last


class New(Stack):
    """This architecture: the parts and command lines of ./scripts/up, with a replica set of one.

    `sharded` has two shards and a router for each service instead, of whose MongoDB only ratios
    count: where it has no build for this machine it is emulated. `old_gateway` and `old_services`
    put the old architecture's in place of its own, to tell what each of them gains.
    """

    def __init__(
        self,
        *,
        tls: bool = False,
        sharded: bool = False,
        old_gateway: bool = False,
        old_services: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(**how)
        self._old_gateway, self._old_services = old_gateway, old_services
        named = topology.SHARDED if sharded else topology.EMBEDDED
        if sharded:
            self.mongod_port = free_block()  # the first of many
        self._local = topology.load(named).on_this_machine(self.mongod_port)
        self._layout = Layout(
            data=self.folder,
            gateway_port=self.gateway_port,
            ingest_ports=tuple(self.ingest_ports),
            monitoring_port=free_port(),
            mongod_port=self.mongod_port,
            topology=str(named),
        )
        self._settings = {"GATEWAY_CLIENT_RATE": ANY_RATE}
        if tls:
            self._settings |= self._tls()

    @property
    def mongodb_uri(self) -> str:
        """How to reach the database beside the services, as its administrator."""
        password = secrets.Secrets.read(self._layout.secrets).admin_password
        login = f"{secrets.ADMIN_USER}:{quote(password, safe='')}@"
        return connection_string(self._local, login=login, authSource="admin")

    def _start(self) -> None:
        self._layout.save()
        secrets.ensure(self._layout.secrets)
        seen = environment(self._layout) | self._settings
        chosen = [self._chosen(part) for part in parts(self._layout) if part.name != "demo"]

        def launch(part: Part) -> Process:
            return self._launch(part.name, part.command, seen | part.environment, self._layout.run)

        for part in (part for part in chosen if part.database):
            launch(part)
        known = secrets.Secrets.read(self._layout.secrets)
        bootstrap(self._local, known, DIRECTORY, lambda _: None, deadline_seconds=BOOTSTRAP_SECONDS)
        started = [(launch(part), part.probe) for part in chosen if not part.database]
        for process, probe in started:
            process.wait_until_healthy(probe)

    def _chosen(self, part: Part) -> Part:
        """Return a part, or the old architecture's in its place."""
        if part.name == "gateway":
            command = old_gateway(self, self._layout.monitoring_port)
            return replace(part, command=command) if self._old_gateway else part
        if part.database or not part.port or not self._old_services:
            return part
        return replace(
            part,
            command=old_service(part.port),
            environment={"MONGODB_URI": self.mongodb_uri},
            probe=health_of(part.port),
        )

    def _tls(self) -> dict[str, str]:
        """Make a certificate; return the settings for it."""
        folder, port, internal = self.folder / "tls", free_port(), f"127.0.0.1:{free_port()}"
        make = [ROOT / "scripts" / "certificate", folder]
        subprocess.run(make, check=True, capture_output=True)
        self.url = f"https://127.0.0.1:{port}"
        return {
            "GATEWAY_TLS_CERTIFICATE": str(folder / "certificate.pem"),
            "GATEWAY_TLS_KEY": str(folder / "key.pem"),
            "GATEWAY_TLS_LISTEN": f"127.0.0.1:{port}",
            "GATEWAY_INTERNAL_LISTEN": internal,
            "GATEWAY_URL": f"http://{internal}",
        }


class Old(Stack):
    """The architecture before: one mongod, sync workers, round robin NGINX (loadtests/baseline).

    `unoptimised` is the original's first query; `durable` answers an insert only when it is on the
    disk, as the new architecture does and the source did not. `indexed` adds the new one's index
    of histories, to tell what that alone gains. `separated` gives the page a service of its own.
    `as_sharded` has the mongod of a sharded cluster, emulated where that is.
    """

    def __init__(
        self,
        *,
        unoptimised: bool = False,
        durable: bool = False,
        indexed: bool = False,
        separated: bool = False,
        as_sharded: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(**how)
        self._indexed, self._as_sharded = indexed, as_sharded
        self._monitoring_port = free_port() if separated else 0
        self._application = f"create_app(unoptimised={unoptimised})"
        self._uri = f"mongodb://127.0.0.1:{self.mongod_port}/{'?journal=true' if durable else ''}"

    @property
    def mongodb_uri(self) -> str:
        """How the services reach the database."""
        return self._uri

    def _start(self) -> None:
        mongod = self._run("mongod", self._mongod())
        mongod.wait_until_healthy(partial(mongodb_problem, self.mongod_port))
        with MongoClient[dict[str, Any]](self._uri) as client:
            beacons = parse(DIRECTORY.read_text("utf-8"))
            client[DATABASE]["beacons"].insert_many([beacon.document() for beacon in beacons])
            if self._indexed:
                client[DATABASE]["staff"].create_index(HISTORY.keys)  # as the new one's
        started = {}
        for number, port in enumerate(self.ingest_ports, start=1):
            name = f"ingest-{number}"  # named as its successor, to be compared with it
            started[port] = self._run(name, old_service(port, self._application))
        if port := self._monitoring_port:
            started[port] = self._run("monitoring", old_service(port, self._application))
        started[self.gateway_port] = self._run("gateway", old_gateway(self, self._monitoring_port))
        for port, process in started.items():
            process.wait_until_healthy(health_of(port))

    def _run(self, name: str, command: list[str]) -> Process:
        return self._launch(name, command, old_environment(self._uri), self.folder)

    def _limits(self, name: str) -> Limits:
        """Return what a part may use: a service of the page as much as the others."""
        return SERVICE if name == "monitoring" else super()._limits(name)

    def _mongod(self) -> list[str]:
        binary = find_binaries(sharded=self._as_sharded) / "mongod"
        (self.folder / "mongod").mkdir()
        options = ["--bind_ip", "127.0.0.1", "--port", str(self.mongod_port), "--dbpath", "mongod"]
        return [str(binary), "--config", str(FOLDER / "mongod.conf"), *options]


def old_gateway(stack: Stack, monitoring_port: int) -> list[str]:
    """Return the command of the old NGINX before a stack's services; port 0: it has no page's."""
    servers = "; server ".join(f"127.0.0.1:{port}" for port in stack.ingest_ports)
    text = NGINX.read_text().replace("@{app}", servers).replace("@{run}", str(stack.folder))
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


OLD, NEW, UNOPTIMISED, DURABLE = "old", "new", "old-unoptimised", "old-durable"
INDEXED = "old-indexed"
# One service of the old architecture for everything, and one beside another for the page: both with
# its NGINX and its database, so that only the separation differs.
COMBINED, SEPARATED = "combined", "separated"
# This architecture with one part of the old one.
REVERTED = OLD_GATEWAY, OLD_SERVICES = "new-old-gateway", "new-old-services"
ARCHITECTURES: dict[str, Callable[..., Stack]] = {
    OLD: Old,
    NEW: New,
    UNOPTIMISED: partial(Old, unoptimised=True),
    DURABLE: partial(Old, durable=True),
    INDEXED: partial(Old, indexed=True),
    COMBINED: partial(Old, services=1),
    SEPARATED: partial(Old, services=1, separated=True),
    OLD_GATEWAY: partial(New, old_gateway=True),
    OLD_SERVICES: partial(New, old_services=True),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose an architecture; without them it is this one."""
    parser.add_argument("--old", action="store_true", help="the old architecture instead")
    disk = "the old one, answering only when a detection is on the disk (the source's did not)"
    forms = parser.add_mutually_exclusive_group()
    for flag, form, text in (
        ("--unoptimised", UNOPTIMISED, "the old one with the original's first query"),
        ("--durable", DURABLE, disk),
        ("--indexed", INDEXED, "the old one with the index of histories that the new one has"),
        ("--combined", COMBINED, "one service of the old one, for everything"),
        ("--separated", SEPARATED, "the same, and one beside it for the page"),
        ("--old-gateway", OLD_GATEWAY, "this architecture with the old one's NGINX"),
        ("--old-services", OLD_SERVICES, "this architecture with the old one's services"),
    ):
        forms.add_argument(flag, dest="form", action="store_const", const=form, help=text)
