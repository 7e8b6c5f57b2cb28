"""The ingest service in this process, on a real mongod."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo import MongoClient
from pymongo.database import Database

from ingest import create_app
from ingest.api import system
from ingest.api.histories import staff_detections
from ingest.assembly import Context
from ingest.config import Config
from ingest.histories import read_through_cache
from ingest.storage.database import availability
from ingest.storage.detections import inserts, stamps
from ingest.storage.directory import beacons
from ingest.storage.histories import recent_state
from ingest.storage.people import last_positions, lost_contacts, notes, people
from ingest.web import health, metrics
from tests.services.ingest.people import Office, office

PATIENT_SECONDS = 5  # a correction waits for twice as long
SHORT = {  # what is as quick as a phone is patient
    availability: ("PROBE_SECONDS", "READ_PROBE_SECONDS"),
    beacons: ("READ_TIMEOUT_SECONDS",),
    last_positions: ("NEW_SECONDS", "VERSIONS_SECONDS", "THERE_SECONDS"),
    health: ("READ_PROBE_SECONDS",),
    lost_contacts: ("READ_SECONDS",),
    notes: ("PATIENCE_SECONDS", "THERE_SECONDS"),
    people: ("READ_TIMEOUT_SECONDS",),
    read_through_cache: ("STATE_SECONDS",),
    staff_detections: ("READ_PROBE_SECONDS",),
    recent_state: ("NEW_SECONDS",),
    stamps: ("READ_SECONDS",),
    inserts: ("LOOK_SECONDS",),
    system: ("PING_TIMEOUT_SECONDS",),
    metrics: ("PING_SECONDS", "COUNT_SECONDS"),
}
BEACON = {"_id": "C2A628384B08", "mac": "C2A628384B08", "level": "4", "location": "Lobby B"}


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Let no finalizer of other tests' garbage run where a body is nested too deeply for it."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def database(mongod: str) -> Iterator[Database[dict[str, Any]]]:
    """Return the database by a connection of our own: the service's has short time-outs."""
    with MongoClient[dict[str, Any]](mongod) as client:
        yield client["ICT3102"]


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let services wait for a database that is there, also on a machine that is full.

    After two seconds as they are shipped, and after less for the directory, the spool takes what
    comes, what is new cannot be told, and nobody can log in.
    """
    for module, names in SHORT.items():
        for name in names:
            monkeypatch.setattr(module, name, PATIENT_SECONDS)


@pytest.fixture
def app(
    mongod: str, database: Database[dict[str, Any]], tmp_path: Path, patience: None
) -> Iterator[Flask]:
    """Return a service; what is tested of a database that is away has services of its own."""
    spool = str(tmp_path / "spool.db")
    for collection in (
        "staff",
        "sealed",
        "latest",
        "notes",
        "beacons",
        "people",
        "lost_contacts",
        "telemetry",
    ):
        database[collection].delete_many({})
    database["beacons"].insert_one(BEACON)
    app = create_app(
        Config(
            mongodb_uri=mongod,
            mongodb_timeout_ms=1000 * PATIENT_SECONDS,
            directory_refresh_seconds=3600,
            spool_file=spool,
        )
    )
    yield app
    context: Context = app.extensions["context"]
    context.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def waymark(
    mongod: str, database: Database[dict[str, Any]], tmp_path: Path, patience: None
) -> Iterator[Office]:
    """Return services in which people may log in."""
    with office(mongod, database, tmp_path) as running:
        yield running
