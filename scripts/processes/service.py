"""One ingest service as it ships: gunicorn with the settings of its checkout."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from scripts.processes import ALLOCATOR, ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import HEALTHY_SECONDS, Process


class IngestService(Process):
    """An ingest service with a port, a spool and a log of its own.

    `source` is the checkout whose service it is, `python` the interpreter with what that needs;
    `prefix` is a command that runs the service's; `settings` are environment variables.
    """

    def __init__(
        self,
        mongodb_uri: str,
        folder: Path,
        *,
        prefix: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        limits: Limits | None = None,
        source: Path = ROOT,
        python: str = sys.executable,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {
            "PYTHONPATH": source,  # its own `common`
            "MONGODB_URI": mongodb_uri,
            "INGEST_BIND": f"127.0.0.1:{self.port}",
            "SPOOL_FILE": folder / f"spool-{self.port}.db",
            **ALLOCATOR,
            **(settings or {}),
        }
        package = source / "services" / "ingest"
        command = [python, "-m", "ingest"]
        if (package / "gunicorn.conf.py").exists():  # a checkout from before the service ran itself
            command = [python, "-m", "gunicorn", "-c", "gunicorn.conf.py"]
        super().__init__(
            f"ingest-{self.port}",
            [*prefix, *command],
            folder / f"ingest-{self.port}.log",
            folder=package,
            environment=os.environ | {name: str(value) for name, value in environment.items()},
            limits=limits,
        )

    def start(self, health: str = "/readyz", seconds: float = HEALTHY_SECONDS) -> None:
        """Start it, and wait until it reaches the database, or only lives (`/healthz`)."""
        super().start()
        try:
            self.wait_until_healthy(partial(http_problem, f"{self.url}{health}"), seconds)
        except BaseException:
            self.kill()
            raise
