"""The ingest service in this process, on a real mongod."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest import create_app
from ingest.config import Config
from ingest.context import Context

BEACON = {"_id": "C2A628384B08", "mac": "C2A628384B08", "level": "4", "location": "Lobby B"}


@pytest.fixture
def app(mongod: str, tmp_path: Path) -> Iterator[Flask]:
    spool = str(tmp_path / "spool.db")
    app = create_app(Config(mongodb_uri=mongod, directory_refresh_seconds=3600, spool_file=spool))
    context: Context = app.extensions["context"]
    database = context.client.database
    for collection in ("staff", "latest", "beacons"):
        database[collection].delete_many({})
    database["beacons"].insert_one(BEACON)
    yield app
    context.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def database(app: Flask) -> Database[dict[str, Any]]:
    context: Context = app.extensions["context"]
    return context.client.database
