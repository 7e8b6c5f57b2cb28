"""The indexes of `staff`, and what the commands to the database say."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.monitoring import CommandListener, CommandStartedEvent

from common.schema import STAFF
from ingest.assembly import Context
from ingest.histories.read_through_cache import Histories
from ingest.rules.request_parameters import TimeRange
from ingest.storage.database.indexes import Indexes
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.states import States
from ingest.storage.people.latest import Latest
from tests.loops import run

NAMES = {"_id_", *(index.name for index in STAFF.indexes)}


class Heard(CommandListener):
    """Keeps the commands that a client sends."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []

    def started(self, event: CommandStartedEvent) -> None:
        self.commands.append(dict(event.command))

    def succeeded(self, _: Any) -> None: ...
    def failed(self, _: Any) -> None: ...

    def of(self, name: str) -> list[dict[str, Any]]:
        return [command for command in self.commands if name in command]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def impatient(mongod: str, heard: Heard) -> Iterator[Database[Any]]:
    """Return the database by a connection with the service's time-out."""
    with MongoClient[dict[str, Any]](mongod, timeoutMS=2000, event_listeners=[heard]) as client:
        yield client["ICT3102"]


def test_the_time_out_of_requests_does_not_cut_the_making_of_an_index(
    client: FlaskClient, impatient: Database[Any], heard: Heard
) -> None:
    impatient["staff"].drop_indexes()
    indexes = Indexes(impatient["staff"])
    indexes.start(30)
    indexes.close()
    assert indexes.present
    assert set(impatient["staff"].index_information()) == NAMES
    (made,) = heard.of("createIndexes")
    assert made["maxTimeMS"] > 3_600_000


def test_ready_only_looks(client: FlaskClient, database: Database[Any]) -> None:
    context: Context = client.application.extensions["context"]
    context.database.indexes.close()  # else it might just look for them itself
    assert client.get("/readyz").get_json()["indexes"] == "ok"
    database["staff"].drop_indexes()
    assert client.get("/readyz").status_code == 200
    assert (
        client.get("/api/v1/coverage").status_code == 200
    )  # not told who was there by a wrong clock
    assert set(database["staff"].index_information()) == {"_id_"}
    context.database.indexes.ensure()
    assert set(database["staff"].index_information()) == NAMES


def test_what_the_back_fill_records_is_never_rolled_back(
    impatient: Database[Any], heard: Heard
) -> None:
    Detections(impatient["staff"]).newest(7, 8)
    assert {row["readConcern"]["level"] for row in heard.of("find")} == {"majority"}


def test_rows_are_read_as_of_their_state_or_later(
    client: FlaskClient, impatient: Database[Any], heard: Heard
) -> None:
    client.post(
        "/newbeacondetect",
        json={"user_address": 7, "beacon_address": "C2A628384B08", "rssi": -20},
    )
    staff = impatient["staff"]
    states = States(staff, Latest(impatient["latest"]))
    histories = Histories(Detections(staff), states, lambda: None, lambda _: None)
    assert run(histories.window(TimeRange(7, 0, 4_102_444_800), time.time())).rows == 1
    histories.close()
    (of_note, of_state, of_blocks), (of_rows,) = (
        [row["readConcern"] for row in heard.of(command)] for command in ("find", "aggregate")
    )
    assert of_note == of_state == {"level": "majority"}
    for as_of in (of_blocks, of_rows):
        assert as_of["level"] == "majority"
        assert as_of["afterClusterTime"]
