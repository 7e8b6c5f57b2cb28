"""One ingest service as it ships: gunicorn with its own settings, in processes of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import requests

from tests.client import Client
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[1]


class Service(Client):
    """An ingest service on a port and with a spool of its own."""

    def __init__(
        self, mongodb_uri: str, folder: Path, prefix: Sequence[str] = (), **settings: object
    ) -> None:
        self._prefix = prefix
        self.port = free_port()
        super().__init__(f"http://127.0.0.1:{self.port}")
        self._log = folder / f"service-{self.port}.log"
        self._environment = os.environ | {
            "MONGODB_URI": mongodb_uri,
            "INGEST_BIND": f"127.0.0.1:{self.port}",
            "SPOOL_FILE": str(folder / f"spool-{self.port}.db"),
            **{name: str(value) for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text()

    def start(self, seconds: float = 60, awaited: str = "/readyz") -> None:
        """Start it, and wait until it reaches the database, or only until it lives (/healthz)."""
        command = [*self._prefix, sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT / "services" / "ingest",
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + seconds
        while not self._good(awaited):
            assert time.monotonic() < until, self.log
            assert self._process.poll() is None, self.log
            time.sleep(0.05)

    def _good(self, awaited: str) -> bool:
        try:
            return self.get(awaited).status_code == 200
        except requests.ConnectionError:
            return False

    def kill(self) -> None:
        """Kill -9 master and worker at once."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
