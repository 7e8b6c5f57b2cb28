"""What gets the load: this architecture, or a form of the old one, as processes on this machine."""

import argparse
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from loadtests.old import Old, as_administrator, mongod_of, old_gateway, old_service, topology_of
from loadtests.stack import Stack, health_of
from mongo import secrets, topology
from mongo.bootstrap import bootstrap
from scripts.native.layout import Layout
from scripts.native.parts import Part, environment, parts
from scripts.processes import ROOT
from scripts.processes.cluster import BOOTSTRAP_SECONDS, DIRECTORY
from scripts.processes.ports import free_block, free_port
from scripts.processes.process import Process

ANY_RATE = "1000000"  # requests/s of one client: here one address is everybody
# An emulated database may need more than a service's 2 s for what a plan stores beforehand.
PATIENT = {"MONGODB_TIMEOUT_MS": "7000"}
PARTS = ("ingest-1", "ingest-2", "gateway", "mongod", "monitoring")  # the old one lacks the last


class New(Stack):
    """This architecture: the parts and command lines of ./scripts/up, with a replica set of one.

    `shards` has so many and a router for each service instead, and 0 one mongod of the same build,
    of whose MongoDB only ratios count: where it has none for this machine it is emulated.
    `old_gateway` and `old_services` put the old architecture's in place of its own, to tell what
    each of them gains.
    """

    works_later = True

    def __init__(
        self,
        *,
        tls: bool = False,
        shards: int | None = None,
        old_gateway: bool = False,
        old_services: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(**how)
        self._old_gateway, self._old_services = old_gateway, old_services
        self._shards, named = shards, topology.EMBEDDED
        if shards:
            self.mongod_port = free_block()  # the first of many
            named = self.folder / "topology.toml"
            named.write_text(topology_of(shards))
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
        if shards is not None:
            self._settings |= PATIENT
        if tls:
            self._settings |= self._tls()

    @property
    def mongodb_uri(self) -> str:
        """How to reach the database beside the services, as its administrator."""
        return as_administrator(self._local, secrets.Secrets.read(self._layout.secrets))

    def _start(self) -> None:
        self._layout.save()
        secrets.ensure(self._layout.secrets)
        seen = environment(self._layout) | self._settings
        chosen = [self._chosen(part) for part in parts(self._layout) if part.name != "demo"]

        def launch(part: Part) -> Process:
            return self._launch(part.name, part.command, seen | part.environment, self._layout.run)

        servers = [(launch(part), part.probe) for part in chosen if part.database]
        known = secrets.Secrets.read(self._layout.secrets)
        bootstrap(self._local, known, DIRECTORY, lambda _: None, deadline_seconds=BOOTSTRAP_SECONDS)
        started = [(launch(part), part.probe) for part in chosen if not part.database]
        for process, probe in servers + started:
            process.wait_until_healthy(probe)

    def _chosen(self, part: Part) -> Part:
        """Return a part, or what a form has in its place."""
        if part.database and self._shards == 0:
            return replace(part, command=[mongod_of(sharded=True), *part.command[1:]])
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


OLD, NEW, UNOPTIMISED, DURABLE = "old", "new", "old-unoptimised", "old-durable"
INDEXED, INDENTED = "old-indexed", "old-indented"
# One service of the old architecture for everything, and one beside another for the page: both with
# its NGINX and its database, so that only the separation differs.
COMBINED, SEPARATED = "combined", "separated"
# This architecture with one part of the old one.
REVERTED = OLD_GATEWAY, OLD_SERVICES = "new-old-gateway", "new-old-services"
MOST_SHARDS, SHARDS = 4, "-shards-"


def sharded(architecture: str, shards: int) -> str:
    """Return the side of the old or the new one with so many shards; 0: with one such mongod."""
    return f"{architecture}{SHARDS}{shards}"


def is_sharded(architecture: str) -> bool:
    """Tell whether it is one of these."""
    return SHARDS in architecture


ARCHITECTURES: dict[str, Callable[..., Stack]] = {
    OLD: Old,
    NEW: New,
    UNOPTIMISED: partial(Old, unoptimised=True),
    DURABLE: partial(Old, durable=True),
    INDEXED: partial(Old, indexed=True),
    INDENTED: partial(Old, indented=True),
    COMBINED: partial(Old, services=1),
    SEPARATED: partial(Old, services=1, separated=True),
    OLD_GATEWAY: partial(New, old_gateway=True),
    OLD_SERVICES: partial(New, old_services=True),
    # Both wait for the disk, so that only the shards differ.
    **{sharded(OLD, n): partial(Old, durable=True, shards=n) for n in range(MOST_SHARDS + 1)},
    **{sharded(NEW, n): partial(New, shards=n) for n in range(MOST_SHARDS + 1)},
}


def chosen(options: argparse.Namespace) -> str:
    """Return the architecture that the options below name."""
    base = OLD if options.old else NEW
    return options.form or (sharded(base, options.sharded) if options.sharded else base)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose an architecture; without them it is this one."""
    parser.add_argument("--old", action="store_true", help="the old architecture instead")
    disk = "the old one, answering only when a detection is on the disk (the source's did not)"
    forms = parser.add_mutually_exclusive_group()
    for flag, form, text in (
        ("--unoptimised", UNOPTIMISED, "the old one with the original's first query"),
        ("--durable", DURABLE, disk),
        ("--indexed", INDEXED, "the old one with the index of histories that the new one has"),
        ("--indented", INDENTED, "the old one, whose JSON is indented as the source's was"),
        ("--combined", COMBINED, "one service of the old one, for everything"),
        ("--separated", SEPARATED, "the same, and one beside it for the page"),
        ("--old-gateway", OLD_GATEWAY, "this architecture with the old one's NGINX"),
        ("--old-services", OLD_SERVICES, "this architecture with the old one's services"),
    ):
        forms.add_argument(flag, dest="form", action="store_const", const=form, help=text)
    many, text = range(1, MOST_SHARDS + 1), "so many shards (2), each of one mongod"
    forms.add_argument("--sharded", type=int, nargs="?", const=2, choices=many, help=text)
