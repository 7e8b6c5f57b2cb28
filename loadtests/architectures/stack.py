"""The two architectures, started as processes of their own under the source's limits."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from gateway.start import find_nginx
from mongo import secrets, topology
from mongo.binaries import find_binaries
from mongo.bootstrap import bootstrap
from mongo.directory import DATABASE, Beacon, parse
from mongo.topology import FOLDER
from scripts.native import parts
from scripts.native.layout import ROOT, Layout
from scripts.processes.control_groups import SERVICE, UNLIMITED, LimitedGroup, Limits, Usage

DIRECTORY = ROOT / "mongo" / "directory.csv"
READY_SECONDS = 60.0
PORTS = range(12_000, 20_000)  # below those that the kernel gives to the generator's connections
ANY_RATE = "1000000"  # requests/s of one client: here one address is everybody


class NotStarted(Exception):
    """A part of a stack did not become well; the text names it and its log."""


@dataclass
class Part:
    """One process of a stack and its share of the machine."""

    name: str
    command: list[str]
    probe: Callable[[], str | None]
    environment: dict[str, str] = field(default_factory=dict)
    limits: Limits = UNLIMITED


class Stack:
    """Parts that run in control groups; `with` starts them, and leaves nothing behind."""

    name = ""

    def __init__(self, *, services: int = 2, limited: bool = True) -> None:
        self.services = services
        self.limited = limited
        self.folder = Path(tempfile.mkdtemp(prefix="waymark-load-"))
        self.work = self.folder  # where the parts run
        self.groups: dict[str, LimitedGroup] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = free_ports(services + 3)
        self.url = f"http://127.0.0.1:{self._ports[0]}"
        self.mongod_port = self._ports[1]

    def __enter__(self) -> "Stack":
        """Start everything; NotStarted when that fails, LimitsUnavailableError when not allowed."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything and delete its data."""
        self.stop()

    def usage(self) -> dict[str, Usage]:
        """Return what each part used since it started; nothing when it runs without groups."""
        return {name: group.usage() for name, group in self.groups.items()}

    def pid(self, name: str) -> int:
        """Return the process that a part was started as."""
        return self._processes[name].pid

    def stop(self) -> None:
        """End the parts, those that send before those that answer."""
        for name in reversed(self._processes):
            process = self._processes[name]
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if group := self.groups.get(name):
                group.close()
        for group in self.groups.values():
            group.close()
        self._processes.clear()
        self.groups.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        raise NotImplementedError

    def _run(self, wanted: list[Part]) -> None:
        """Start parts side by side; the CPU limit begins when all are well, memory's at once."""
        for part in wanted:
            self._launch(part)
        for part in wanted:
            self._wait(part)
        for part in wanted:
            if part.name in self.groups:
                self.groups[part.name].limit(part.limits)

    def _launch(self, part: Part) -> None:
        command = ["setpriv", "--pdeathsig", "TERM", *part.command]
        if self.limited:
            group = LimitedGroup(part.name, part.limits._replace(cpu=None))
            self.groups[part.name] = group
            command = group.command(command)
        with (self.folder / f"{part.name}.log").open("wb") as log:
            self._processes[part.name] = subprocess.Popen(
                command,
                cwd=self.work,
                env=self._environment() | part.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is ours to handle, in the right order
            )

    def _environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}

    def _wait(self, part: Part) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while wrong := part.probe():
            ended = self._processes[part.name].poll() is not None
            if ended or time.monotonic() > deadline:
                log = (self.folder / f"{part.name}.log").read_text(errors="replace")
                raise NotStarted(f"{part.name} did not start ({wrong}): {log[-500:]}")
            time.sleep(0.05)


class New(Stack):
    """This architecture: the parts and command lines of ./scripts/up."""

    name = "new"

    def __init__(self, *, tls: bool = False, services: int = 2, limited: bool = True) -> None:
        super().__init__(services=services, limited=limited)
        self._tls = tls
        if tls:
            internal, encrypted = free_ports(2)
            self.url = f"https://127.0.0.1:{encrypted}"
            self._tls_ports = internal, encrypted

    def _start(self) -> None:
        gateway, mongod, monitoring, *ingest = self._ports
        self.layout = Layout(
            data=self.folder,
            gateway_port=gateway,
            ingest_ports=tuple(ingest),
            monitoring_port=monitoring,
            mongod_port=mongod,
            topology=str(topology.EMBEDDED),
        )
        self.layout.save()
        self.work = self.layout.run
        secrets.ensure(self.layout.secrets)
        every = [part for part in parts.parts(self.layout) if part.name != "demo"]
        for part in every:
            if part.database:
                self._launch(_native(part))
        bootstrap(
            topology.load(topology.EMBEDDED).on_this_machine(mongod),
            secrets.Secrets.read(self.layout.secrets),
            DIRECTORY,
            lambda _: None,
        )
        self._run([_native(part) for part in every if not part.database])

    def _environment(self) -> dict[str, str]:
        given = parts.environment(self.layout) | {"GATEWAY_CLIENT_RATE": ANY_RATE}
        if not self._tls:
            return given
        folder = self.folder / "tls"
        if not folder.exists():
            subprocess.run(
                [ROOT / "scripts" / "certificate", folder], check=True, capture_output=True
            )
        internal, encrypted = (f"127.0.0.1:{port}" for port in self._tls_ports)
        return given | {
            "GATEWAY_TLS_CERTIFICATE": str(folder / "certificate.pem"),
            "GATEWAY_TLS_KEY": str(folder / "key.pem"),
            "GATEWAY_TLS_LISTEN": encrypted,
            "GATEWAY_INTERNAL_LISTEN": internal,
            "GATEWAY_URL": f"http://{internal}",
        }


class Old(Stack):
    """The architecture before: see loadtests/baseline.

    `unoptimised` is the original's first query; `durable` answers an insert only when it is on the
    disk, as the new side does and the source did not.
    """

    name = "old"

    def __init__(
        self,
        *,
        unoptimised: bool = False,
        durable: bool = False,
        services: int = 2,
        limited: bool = True,
    ) -> None:
        super().__init__(services=services, limited=limited)
        self._unoptimised = unoptimised
        self._query = "?journal=true" if durable else ""

    def _start(self) -> None:
        front, mongod, _, *applications = self._ports
        uri = f"mongodb://127.0.0.1:{mongod}/{self._query}"
        self._run([self._mongod(mongod)])
        with MongoClient[Beacon](uri) as client:
            client[DATABASE]["beacons"].insert_many(
                parse(DIRECTORY.read_text("utf-8").splitlines())
            )
        services = [self._application(n, port, uri) for n, port in enumerate(applications)]
        self._run([*services, self._nginx(front, applications)])

    def _mongod(self, port: int) -> Part:
        binary = find_binaries(sharded=False) / "mongod"
        (self.folder / "mongod").mkdir()
        options = ["--bind_ip", "127.0.0.1", "--port", str(port), "--dbpath", "mongod"]
        command = [str(binary), "--config", str(FOLDER / "mongod.conf"), *options]

        def probe() -> str | None:
            try:
                with MongoClient[Beacon](port=port, timeoutMS=1000) as client:
                    client.admin.command("ping")
            except PyMongoError as error:
                return str(error)
            return None

        return Part("mongod", command, probe)

    def _application(self, number: int, port: int, uri: str) -> Part:
        application = f"loadtests.baseline.app:create_app(unoptimised={self._unoptimised})"
        command = [sys.executable, "-m", "gunicorn", "--no-control-socket"]
        command += ["--bind", f"127.0.0.1:{port}", application]
        name = f"ingest-{number + 1}"  # named as its successor, to be compared with it
        return Part(name, command, _http(port), {"MONGODB_URI": uri}, SERVICE)

    def _nginx(self, port: int, applications: list[int]) -> Part:
        text = (ROOT / "loadtests" / "baseline" / "nginx.conf.template").read_text()
        servers = "; server ".join(f"127.0.0.1:{one}" for one in applications)
        text = text.replace("@{app}", servers).replace("@{listen}", f"127.0.0.1:{port}")
        configuration = self.folder / "nginx.conf"
        configuration.write_text(text.replace("@{run}", str(self.folder)))
        command = [find_nginx(), "-e", "stderr", "-p", str(self.folder), "-c", str(configuration)]
        return Part("gateway", command, _http(port))


def _native(part: parts.Part) -> Part:
    limits = SERVICE if part.name.startswith("ingest-") else UNLIMITED
    return Part(part.name, part.command, part.probe, part.environment, limits)


def _http(port: int) -> Callable[[], str | None]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def probe() -> str | None:
        try:
            opener.open(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
        except OSError as error:
            return str(error)
        return None

    return probe


def free_ports(count: int) -> list[int]:
    """Return free ports; held together until all are found, so that they differ."""
    with contextlib.ExitStack() as held:
        found: Iterator[int] = (
            port for port in random.sample(PORTS, len(PORTS)) if _free(port, held)
        )
        return [next(found) for _ in range(count)]


def _free(port: int, held: contextlib.ExitStack) -> bool:
    probe = held.enter_context(socket.socket())
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
