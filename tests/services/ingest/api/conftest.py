"""A client of the API that believes no answer that is not declared."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ingest import create_app
from ingest.assembly import Context
from ingest.config import Config
from tests.services.ingest.api import contract

MAC = "C2A628384B08"  # at Lobby B on level 4


class Checked(FlaskClient):
    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        answer = super().open(*args, **kwargs)
        request = answer.request
        kind = answer.mimetype or ""
        if request.path.startswith("/api/v1") and request.method in (
            "GET",
            "PUT",
            "POST",
            "DELETE",
        ):
            contract.check(request.method, request.path, answer.status_code, kind, answer.data)
        return answer


class Api:
    """Short words for what the tests do."""

    def __init__(self, app: Flask) -> None:
        app.test_client_class = Checked
        self.client = app.test_client()
        self.context: Context = app.extensions["context"]

    def get(self, path: str, **query: Any) -> Any:
        answer = self.client.get(f"/api/v1{path}", query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json

    def hear(self, staff_id: object, mac: str = MAC, *, ago: int = 0, **more: Any) -> int:
        """Store a detection through the legacy endpoint; return its timestamp."""
        timestamp = int(time.time()) - ago
        body = {"user_address": staff_id, "beacon_address": mac, "rssi": -60}
        answer = self.client.post("/newbeacondetect", json=body | {"timestamp": timestamp} | more)
        assert answer.status_code == 200, answer.text
        return timestamp


@pytest.fixture
def api(app: Flask) -> Api:
    return Api(app)


@pytest.fixture(scope="module")
def strict(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Return a service for tests of what it refuses: it keeps nothing of that, so they share it."""
    spool = str(tmp_path_factory.mktemp("strict") / "spool.db")
    api = Api(create_app(Config(mongodb_uri=mongod, mongodb_timeout_ms=5000, spool_file=spool)))
    yield api
    api.context.close()
