"""Peers: servers of others that take positions over HTTP, each by itself, without a proxy.

None is a part of this project, and no distribution has them: for their rows, bring them.
"""

import json
import os
import secrets
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from loadtests.engine.client import Api, Response, WrongResponse
from loadtests.speed.sides import Dialect
from loadtests.stack import Stack
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import NotHealthyError

RECORDER, TRACCAR = "OWNTRACKS_RECORDER", "TRACCAR"  # variables that name them
VERSIONS = {RECORDER: "1.0.1", TRACCAR: "6.9.1"}  # those that docs/measurements.md speaks of
DEVICE = "phone"  # each person's
PLACE = {"lat": 1.3774, "lon": 103.8489}
SPAN = {"from": "2020-01-01T00:00:00Z", "to": "2099-12-31T00:00:00Z"}
JAVA_SECONDS = 120.0  # it makes its tables first
JAVA_OPTIONS = ("-XX:ActiveProcessorCount=1", "-Xmx512m")  # a small machine, as the box is one


class NoPeerError(OSError):
    """The peer cannot be run here; the text says what to do."""


class Recorder(Stack):
    """OwnTracks Recorder, in C, which stores in files.

    It waits for no disk; `durable`: each record is on it before a write returns.
    """

    def __init__(self, *, durable: bool, **how: Any) -> None:
        self._program = _recorder()
        super().__init__(services=0, **how)
        self._durable = durable
        self.dialect = Dialect(_publish, _is_published, _locations, b'"isorcv"')

    def _start(self) -> None:
        store = self.folder / "store"
        store.mkdir()
        where = [str(self._program), "--storage", str(store)]
        subprocess.run([*where, "--initialize"], check=True, capture_output=True)
        if self._durable:
            synchronous(store / "rec")
        how = ["--quiet", "--norevgeo", "--doc-root", str(store)]
        listen = ["--http-host", "127.0.0.1", "--http-port", str(self.gateway_port)]
        process = self._launch("recorder", [*where, *how, *listen], os.environ, self.folder)
        process.wait_until_healthy(partial(http_problem, f"{self.url}/api/0/version"))
        with closing(Api(self.url)) as api:
            _check_version(RECORDER, api, "/api/0/version")


class Traccar(Stack):
    """Traccar, in Java, with the database it comes with (H2); it answers when that has committed.

    H2 waits for no disk; `durable`: each commit is on it before the answer. Of `people` it knows.
    """

    def __init__(self, people: Iterable[int], *, durable: bool, **how: Any) -> None:
        self._home = _traccar()
        super().__init__(services=0, **how)
        self._people = tuple(people)
        self._durable = durable
        self._web_port = free_port()
        self._devices: dict[int, int] = {}
        web, token = f"http://127.0.0.1:{self._web_port}", secrets.token_urlsafe()
        self._web, self._token = web, token
        self._shown = {"Authorization": f"Bearer {token}"}
        self.dialect = Dialect(
            _report, _is_reported, self._positions, b'"fixTime"', web, self._shown
        )

    def _start(self) -> None:
        data, pages = self.folder / "data", self.folder / "web"
        pages.mkdir()
        (pages / "index.html").touch()
        if self._durable:
            synchronous(data)
        at_once = ";WRITE_DELAY=0" if self._durable else ""
        configuration = self.folder / "traccar.xml"
        configuration.write_text(
            _as_xml(
                {
                    "web.address": "127.0.0.1",
                    "web.port": self._web_port,
                    "web.path": pages,
                    "web.serviceAccountToken": self._token,
                    "server.statistics": "",  # else it tells its maker
                    "protocols.enable": "osmand",  # else it listens on 270 ports more
                    "osmand.address": "127.0.0.1",
                    "osmand.port": self.gateway_port,
                    # Else it answers before it stores, and what it stores is read 3 s later.
                    "server.delayAcknowledgement": "true",
                    "server.buffering.threshold": 0,
                    "database.driver": "org.h2.Driver",
                    "database.url": f"jdbc:h2:{data / 'database'}{at_once}",
                    "database.user": "sa",
                    "database.password": "",
                    "logger.file": self.folder / "traccar.log",
                    "logger.level": "warning",
                }
            )
        )
        command = [_java(), *JAVA_OPTIONS, "-jar", "tracker-server.jar", str(configuration)]
        process = self._launch("traccar", command, os.environ, self._home)
        health = partial(http_problem, f"{self._web}/api/server")
        try:
            process.wait_until_healthy(health, JAVA_SECONDS)
        except NotHealthyError as error:
            raise NoPeerError(f"what {TRACCAR} names does not start: {error}") from error
        with closing(Api(self._web)) as api:
            _check_version(TRACCAR, api, "/api/server")
            for staff in self._people:  # two requests at once that make one fail
                body = json.dumps({"name": str(staff), "uniqueId": str(staff)}).encode()
                made = api.send("/api/devices", body, self._shown)
                if made.status != 200:
                    raise NoPeerError(f"no device for {staff}: {made.status} {made.body[:200]!r}")
                self._devices[staff] = json.loads(made.body)["id"]

    def _positions(self, staff: int) -> str:
        asked = {"deviceId": self._devices[staff]} | SPAN
        return f"/api/positions?{urllib.parse.urlencode(asked)}"


def synchronous(folder: Path) -> None:
    """Have all that is written to files in a folder be on the disk before the write returns.

    Raises NoPeerError where the file system cannot.
    """
    folder.mkdir(exist_ok=True)
    said = subprocess.run(["chattr", "+S", folder], capture_output=True, text=True, check=False)
    if said.returncode:
        raise NoPeerError(f"no synchronous files here: {said.stderr.strip()}")


def _check_version(peer: str, api: Api, path: str) -> None:
    said = api.send(path).body.decode()
    if f'"version":"{VERSIONS[peer]}"' not in said:
        raise NoPeerError(f"what {peer} names is not version {VERSIONS[peer]}: {said[:200]}")


def _recorder() -> Path:
    named = os.environ.get(RECORDER, "ot-recorder")
    program = shutil.which(named)
    if not program:
        raise NoPeerError(f"{named} is no program here: {RECORDER} may name OwnTracks Recorder's")
    return Path(program)


def _traccar() -> Path:
    home = Path(os.environ.get(TRACCAR, "/opt/traccar"))
    if not (home / "tracker-server.jar").is_file():
        raise NoPeerError(f"{home} has no tracker-server.jar: {TRACCAR} may name Traccar's folder")
    return home.absolute()


def _java() -> str:
    if not (java := shutil.which("java")):
        raise NoPeerError("no java here, which Traccar needs")
    return java


def _publish(staff: int) -> tuple[str, bytes]:
    position = {"_type": "location", "tid": str(staff)[-2:], "acc": 5} | PLACE
    body = json.dumps(position | {"tst": 1_700_000_000 + staff}).encode()
    return f"/pub?u={staff}&d={DEVICE}", body


def _is_published(response: Response) -> None:
    if not response.body.startswith(b"["):
        raise WrongResponse(f"not a list: {response.body[:80]!r}")


def _locations(staff: int) -> str:
    span = {name: day[:10] for name, day in SPAN.items()}
    asked = {"user": staff, "device": DEVICE} | span
    return f"/api/0/locations?{urllib.parse.urlencode(asked)}"


def _report(staff: int) -> tuple[str, None]:
    position = {"id": staff, "timestamp": int(time.time()), "accuracy": 5} | PLACE
    return f"/?{urllib.parse.urlencode(position)}", None


def _is_reported(response: Response) -> None:
    if response.body:
        raise WrongResponse(f"not an empty answer: {response.body[:80]!r}")


def _as_xml(entries: dict[str, object]) -> str:
    """Return entries as Java's Properties reads them."""
    lines = (f"<entry key='{name}'>{escape(str(value))}</entry>" for name, value in entries.items())
    doctype = "<!DOCTYPE properties SYSTEM 'http://java.sun.com/dtd/properties.dtd'>"
    all_lines = ("<?xml version='1.0'?>", doctype, "<properties>", *lines, "</properties>")
    return "\n".join(all_lines)
