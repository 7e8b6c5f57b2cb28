"""The API while the database is away, and when it breaks."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ingest import create_app
from ingest.api.people import last_positions
from ingest.config import Config
from ingest.errors import StoreUnavailable
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.services.ingest.api.conftest import MAC, Api

BEACON = {"level": "4", "location": "Lobby"}
GONE_HOME = {"state": "gone_home", "timestamp": 0}


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Api]:
    uri = f"mongodb://127.0.0.1:{free_port()}/?replicaSet=embedded"
    spool = str(tmp_path / "spool.db")
    app: Flask = create_app(Config(mongodb_uri=uri, mongodb_timeout_ms=300, spool_file=spool))
    yield Api(app)
    app.extensions["context"].close()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/staff"),
        ("GET", "/now"),
        ("GET", "/staff/1/detections"),
        ("GET", "/changes"),
        ("GET", "/changes?wait=20"),
        ("GET", "/coverage"),
        ("GET", "/visits?level=4&location=Lobby+B&from=0&to=9"),
        ("GET", "/beacons"),
        ("GET", f"/beacons/{MAC}"),
        ("PUT", f"/beacons/{MAC}?correct_past=1"),
        ("PUT", "/staff/1/lost_contact"),
        ("POST", f"/beacons/{MAC}/correction"),
        ("DELETE", f"/beacons/{MAC}"),
        ("POST", "/beacons/import"),
        ("GET", "/beacons/unknown"),
    ],
)
def test_what_needs_the_database_says_so_at_once(away: Api, method: str, path: str) -> None:
    file = {"data": "mac,level,location,x,y\n", "content_type": "text/csv"}
    body: dict[str, Any] = {
        "PUT": {"json": GONE_HOME if "lost" in path else BEACON},
        "POST": file,
    }.get(method, {})  # type: ignore[assignment]

    def at_once() -> list[TestResponse]:
        began = time.monotonic()
        answer = away.client.open(f"/api/v1{path}", method=method, **body)
        return [answer] if time.monotonic() - began < 3 else []

    (answer,) = eventually(at_once)  # one of a few: this machine may stall
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.json is not None
    assert answer.json["code"] == "store_unavailable"


def test_detections_are_queued(away: Api) -> None:
    good = {"staff_id": 1, "mac": MAC, "rssi": -67}
    for query, status, queued in (("?dry_run=1", "would queue", 0), ("", "queued", 1)):
        items = {"detections": [good, {}]}
        answer = away.client.post(f"/api/v1/detections{query}", json=items)
        assert answer.status_code == 202
        assert answer.json is not None
        first, second = answer.json["results"]
        assert (first["status"], second["status"]) == (status, "rejected")
        assert (first["level"], first["location"], first["known"]) == (None, None, False)
        assert away.context.recording.recorder.queued == queued


def test_the_directory_is_still_told_from_memory(api: Api) -> None:
    before = api.get("/beacons")
    cannot_be_read = patch.object(
        api.context.directory.cache, "current", side_effect=StoreUnavailable
    )
    degraded = patch.object(
        type(api.context.database.availability), "degraded", property(lambda _: True)
    )
    with cannot_be_read, degraded:
        assert api.get("/beacons") == before
        assert api.get(f"/beacons/{MAC}")["location"] == "Lobby B"


def test_a_bug_is_a_problem_without_its_insides(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    with patch.object(last_positions, "answer", side_effect=ZeroDivisionError("secret")):
        plain = FlaskClient(api.client.application, Response)
        answer = plain.get("/api/v1/staff", headers={"X-Request-ID": "me"})
    assert answer.status_code == 500
    assert answer.json is not None
    assert answer.json["code"] == "internal_error"
    assert answer.json["request_id"] == "me"
    assert "secret" not in answer.text
    assert "ZeroDivisionError: secret" in caplog.text
