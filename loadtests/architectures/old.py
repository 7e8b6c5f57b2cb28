"""The architecture before this one: see loadtests/baseline."""

import os
import sys
from functools import partial

from pymongo import MongoClient

from gateway.start import find_nginx
from loadtests.architectures.stack import Stack
from mongo.binaries import find_binaries
from mongo.directory import DATABASE, Beacon, parse
from mongo.topology import FOLDER
from scripts.processes import ROOT
from scripts.processes.cluster import DIRECTORY
from scripts.processes.health import Probe, http_problem, mongodb_problem

NGINX = ROOT / "loadtests" / "baseline" / "nginx.conf.template"


class Old(Stack):
    """One mongod, sync workers, round robin NGINX.

    `unoptimised` is the original's first query; `durable` answers an insert only when it is on the
    disk, as the new architecture does and the source did not.
    """

    def __init__(
        self,
        *,
        unoptimised: bool = False,
        durable: bool = False,
        services: int = 2,
        limited: bool = True,
    ) -> None:
        super().__init__(services=services, limited=limited)
        self._application = f"loadtests.baseline.app:create_app(unoptimised={unoptimised})"
        self._uri = f"mongodb://127.0.0.1:{self.mongod_port}/{'?journal=true' if durable else ''}"

    def _start(self) -> None:
        self._run("mongod", self._mongod())
        self._wait({"mongod": partial(mongodb_problem, self.mongod_port)})
        with MongoClient[Beacon](self._uri) as client:
            beacons = parse(DIRECTORY.read_text("utf-8").splitlines())
            client[DATABASE]["beacons"].insert_many(beacons)
        probes: dict[str, Probe] = {}
        for number, port in enumerate(self.ingest_ports, start=1):
            name = f"ingest-{number}"  # named as its successor, to be compared with it
            self._run(name, gunicorn(port, self._application))
            probes[name] = partial(http_problem, f"http://127.0.0.1:{port}/healthz")
        self._run("gateway", self._nginx())
        self._wait(probes | {"gateway": partial(http_problem, f"{self.url}/healthz")})

    def _run(self, name: str, command: list[str]) -> None:
        self._launch(name, command, environment(self._uri), self.folder)

    def _mongod(self) -> list[str]:
        binary = find_binaries(sharded=False) / "mongod"
        (self.folder / "mongod").mkdir()
        options = ["--bind_ip", "127.0.0.1", "--port", str(self.mongod_port), "--dbpath", "mongod"]
        return [str(binary), "--config", str(FOLDER / "mongod.conf"), *options]

    def _nginx(self) -> list[str]:
        servers = "; server ".join(f"127.0.0.1:{port}" for port in self.ingest_ports)
        text = NGINX.read_text().replace("@{app}", servers)
        text = text.replace("@{listen}", f"127.0.0.1:{self.gateway_port}")
        configuration = self.folder / "nginx.conf"
        configuration.write_text(text.replace("@{run}", str(self.folder)))
        return [find_nginx(), "-e", "stderr", "-p", str(self.folder), "-c", str(configuration)]


def gunicorn(port: int, application: str) -> list[str]:
    """Return the command that serves an old application."""
    command = [sys.executable, "-m", "gunicorn", "--no-control-socket", "--log-level", "error"]
    return [*command, "--bind", f"127.0.0.1:{port}", application]


def environment(uri: str) -> dict[str, str]:
    """Return what an old application sees."""
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "MONGODB_URI": uri}
