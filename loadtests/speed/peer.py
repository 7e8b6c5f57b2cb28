"""OwnTracks Recorder, a peer written in C that stores in files, as one process on this machine."""

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from loadtests.engine.client import Api
from loadtests.stack import Stack
from scripts.processes.health import http_problem

VERSION = "1.0.1"  # the one that docs/measurements.md speaks of
VARIABLE = "OWNTRACKS_RECORDER"
_VERSION = "/api/0/version"


class NoPeerError(OSError):
    """The peer cannot be run here; the text says what to do."""


class Peer(Stack):
    """The recorder by itself, without a proxy; `durable` when each record is on the disk first."""

    def __init__(self, *, durable: bool, **how: Any) -> None:
        super().__init__(services=0, **how)
        self._program = program()
        self._durable = durable

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
        process.wait_until_healthy(partial(http_problem, f"{self.url}{_VERSION}"))
        if f'"{VERSION}"' not in (said := Api(self.url).send(_VERSION).body.decode()):
            raise NoPeerError(f"{self._program} is not version {VERSION}: {said}")


def program() -> Path:
    """Return the recorder of this machine. Raises NoPeerError where there is none.

    No distribution and no registry has it: who wants its rows brings it.
    """
    named = os.environ.get(VARIABLE, "ot-recorder")
    found = shutil.which(named)
    if not found:
        raise NoPeerError(f"{named} is no program here: {VARIABLE} may name OwnTracks Recorder's")
    return Path(found)


def synchronous(folder: Path) -> None:
    """Have all that is written to files in a folder be on the disk before the write returns.

    The recorder itself waits for no disk. Raises NoPeerError where the file system cannot.
    """
    folder.mkdir(exist_ok=True)
    said = subprocess.run(["chattr", "+S", folder], capture_output=True, text=True, check=False)
    if said.returncode:
        raise NoPeerError(f"no synchronous files here: {said.stderr.strip()}")
