"""The monitoring service: in this process, and as it ships."""

import http.client
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from monitoring import create_app
from monitoring.config import Config
from scripts.processes import ALLOCATOR, ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import Process


class Service(Process):
    """The monitoring service behind gunicorn, with a port of its own."""

    def __init__(
        self,
        gateway_url: str,
        folder: Path,
        limits: Limits | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        environment = {
            "GATEWAY_URL": gateway_url,
            "MONITORING_BIND": f"127.0.0.1:{self.port}",
        } | ALLOCATOR
        super().__init__(
            "monitoring",
            [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py"],
            folder / "monitoring.log",
            folder=ROOT / "services" / "monitoring",
            environment=os.environ | environment | dict(settings or {}),
            limits=limits,
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        super().start()
        self.wait_until_healthy(partial(http_problem, f"http://127.0.0.1:{self.port}/healthz"))

    def seconds(self, method: str, path: str, status: int) -> float:
        """Return how long an answer took, which must have that status."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == status
        return time.monotonic() - began


@pytest.fixture
def client() -> FlaskClient:
    """Return a client of a service whose gateway is gone."""
    return create_app(Config(gateway_url=f"http://127.0.0.1:{free_port()}")).test_client()
