"""People who log in to services that require it, on a real database."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask
from pymongo.database import Database
from werkzeug.test import TestResponse

from ingest import create_app
from ingest.assembly import Context
from ingest.config import Config
from ingest.rules.roles import Role
from scripts.processes import ROOT
from tests.services.ingest.api.conftest import Checked

PASSWORD = "correct horse battery"
KEY = "k" * 43
LOG_IN = "/api/v1/session"


@dataclass
class Office:
    """Services that share a database and a key; one makes them with `service`."""

    mongod: str
    folder: Path
    made: list[Context]

    def service(self, **settings: Any) -> Flask:
        (self.folder / "session_key").write_text(f"{KEY}\n")
        fields = {
            "mongodb_uri": self.mongod,
            "spool_file": str(self.folder / f"spool-{len(self.made)}.db"),
            "session_key_file": str(self.folder / "session_key"),
            "waymark_access": "required",
            "mongodb_timeout_ms": 5000,  # a machine that is full has time
            **settings,
        }
        app = create_app(Config(**fields))
        app.test_client_class = Checked
        self.made.append(app.extensions["context"])
        return app

    def command(self, name: str, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of the service as an administrator does, on the same database."""
        return subprocess.run(
            [sys.executable, "-m", f"ingest.commands.{name}", *words],
            cwd=ROOT / "services" / "ingest",
            env=os.environ | {"MONGODB_URI": self.mongod},
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )

    def person(self, name: str, role: Role, password: str = PASSWORD) -> None:
        context = self.made[0]
        context.access.accounts.put(
            name, role, context.access.passwords.hash(password), time.time()
        )


@contextmanager
def office(mongod: str, database: Database[dict[str, Any]], folder: Path) -> Iterator[Office]:
    for name in (
        "accounts",
        "tokens",
        "beacons",
        "people",
        "staff",
        "latest",
        "notes",
        "lost_contacts",
        "telemetry",
    ):
        database[name].delete_many({})
    running = Office(mongod, folder, [])
    yield running
    for context in running.made:
        context.close()


class Person:
    """A browser."""

    def __init__(self, app: Flask, address: str = "192.0.2.1", proto: str = "http") -> None:
        self.client = app.test_client()
        self.headers = {"X-Forwarded-For": address, "X-Forwarded-Proto": proto}
        self.csrf = ""

    def log_in(self, name: str, password: str = PASSWORD) -> TestResponse:
        body = {"name": name, "password": password}
        answer = self.client.post(LOG_IN, json=body, headers=self.headers)
        if answer.status_code == 200:
            self.csrf = answer.get_json()["csrf_token"]
        return answer

    def open(self, method: str, path: str, **more: Any) -> TestResponse:
        headers = self.headers | {"X-CSRF-Token": self.csrf} | more.pop("headers", {})
        return self.client.open(f"/api/v1{path}", method=method, headers=headers, **more)

    def status(self) -> int:
        return self.open("GET", "/session").status_code
