"""A damaged block: who can say so leaves it out, and nothing else is held up or lost by it."""

import io
import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock
from zipfile import ZipFile

import pytest
from flask import Flask
from pymongo.database import Database

from common.beacon import Beacon
from ingest.api.http import responses
from ingest.api.places import coverage
from ingest.commands import person as command
from ingest.recording import corrections
from ingest.recording.corrections import Correction, Corrections
from ingest.recording.erasure_list import ErasureList
from ingest.recording.forgetting import Stored
from ingest.recording.kept import Kept
from ingest.storage.access.audit import Audit
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Place
from ingest.storage.directory.past_places import PastPlaces
from ingest.storage.sealed import damage, sealed
from ingest.storage.sealed.blocks import DamagedBlock
from ingest.storage.sealed.damage import MAX_LEFT_OUT, MAX_MET, MET_SECONDS, leaving_out
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed
from tests.services.ingest.api.conftest import MAC, Api

HERS, HIS = "anneliese", 12
COUNT, STAY, DAY_SECONDS = 40, 16, 86_400
STRANGER = "FFEE00000009"
ALL = "start_time=0&end_time=4102444800"


class Archive(NamedTuple):
    """A service with two people of whom all but the newest is sealed; hers cannot be read."""

    api: Api
    database: Database[Any]
    whole: dict[str, Any]  # her block as it was
    start: int

    @property
    def last(self) -> int:
        return self.start + COUNT - STAY - 1

    def warned(self) -> list[str]:
        """Return what System warns of."""
        return [warning["what"] for warning in self.api.get("/system")["warnings"]]

    def visits(self) -> Any:
        query = {"level": "4", "location": "Lobby B"}
        return self.api.get("/visits", **query, **{"from": self.start, "to": self.start + 99})


@pytest.fixture
def archive(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Archive]:
    monkeypatch.setattr(sealed, "settled", lambda stamp: stamp)  # what was just stored may go
    monkeypatch.setattr(coverage._shared, "get", lambda _key, read: read())
    api, now = Api(app), int(time.time())
    start = now - 3 * DAY_SECONDS
    for person in (HERS, HIS):
        for n in range(COUNT):
            # Each other one is of a beacon that nobody knows.
            mac = (MAC, STRANGER)[n % 2]
            at = start + n if n < COUNT - STAY else now - COUNT + n
            api.hear(person, mac, timestamp=at)
        sealer = Sealed(database["staff"])
        assert sealer.seal(person, now - DAY_SECONDS, now)
        assert any(piece.deleted for piece in sealer.settle(person, now + GRACE_SECONDS + 1))
    whole = database["sealed"].find_one({"staff_id": HERS, "count": COUNT - STAY})
    assert whole
    database["sealed"].update_one({"_id": whole["_id"]}, {"$set": {"names": b"??"}})
    yield Archive(api, database, whole, whole["first"])
    damage.forget(lambda _: True)


def test_answers_that_can_say_so_leave_it_out(archive: Archive) -> None:
    api = archive.api
    visits = archive.visits()
    assert visits["damaged_blocks"] == 1
    assert [visit["staff_id"] for visit in visits["data"]] == [HIS]
    since = archive.start + 4
    unknown = api.get("/beacons/unknown", since=since)
    assert unknown["damaged_blocks"] == 1
    assert unknown["data"][0]["count"] == COUNT // 2 - 2 + STAY // 2  # his, and her rows
    history = api.get(f"/staff/{HERS}/detections", limit=1000)
    assert (len(history["data"]), history["damaged_blocks"]) == (STAY, 1)
    history = api.get(f"/staff/{HIS}/detections", limit=1000)
    assert (len(history["data"]), history["damaged_blocks"]) == (COUNT, 0)
    assert api.get("/coverage")["damaged_blocks"] == 0  # none had to be opened
    api.get("/system/database")


def test_what_has_no_place_to_say_so_is_exact_or_fails(archive: Archive) -> None:
    client = archive.api.client
    between = f"start_time={archive.start + COUNT}&end_time=4102444800"
    files = f"/api/v1/staff/{HERS}/detections?format=csv"
    for path, beside, status in (
        (f"/extractbeacon?staff_id={HERS}&{ALL}", f"/extractbeacon?staff_id={HERS}&{between}", 500),
        (files, f"{files}&from={archive.start + COUNT}", 410),
    ):
        assert client.get(path).status_code == status
        assert client.get(beside).status_code == 200
        assert client.get(path.replace(HERS, str(HIS))).status_code == 200


def test_system_names_it_until_it_is_whole_again(
    archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    between = f"{responses.iso(archive.start)} to {responses.iso(archive.last)}"
    warning = f"{COUNT - STAY} sealed detections of staff {HERS}, {between}, cannot be read"
    assert warning not in archive.warned()
    for _ in range(2):
        archive.visits()
        assert archive.warned().count(warning) == 1
    (told,) = [record.message for record in caplog.records if "damaged" in record.message]
    assert str(archive.last) in told
    assert HERS not in told
    assert HERS not in archive.api.client.get("/readyz").text  # which asks nobody for a token
    archive.database["sealed"].replace_one({"_id": archive.whole["_id"]}, archive.whole)
    assert archive.visits()["damaged_blocks"] == 0
    assert warning not in archive.warned()


def test_a_correction_goes_round_it(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHECK_SECONDS", "READ_TIMEOUT_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(corrections, name, 0.0)
    staff, beacons = archive.database["staff"], Beacons(archive.database)
    corrector = Corrections(PastPlaces(staff), beacons, 1.0)
    place = Place("6", "Library")
    moved = Beacon(MAC, *place)
    archive.database["beacons"].replace_one({"_id": MAC}, moved.document(), upsert=True)
    of_hers = archive.database["sealed"].find_one({"_id": archive.whole["_id"]})
    blocks = (COUNT - STAY) // 2
    rows = staff.count_documents({"mac": MAC})
    assert corrector.correct(moved, "c1") == Correction(blocks + rows, None)
    assert archive.database["sealed"].find_one({"_id": archive.whole["_id"]}) == of_hers
    assert corrector.foresee(MAC, None, place) == [(HERS, blocks)]
    assert corrector.undo([MAC], "c1") == Correction(blocks + rows, None)


def test_who_is_forgotten_goes_with_it(archive: Archive) -> None:
    archive.visits()
    for is_first in (True, False):
        context = archive.api.context
        context.recording.forgetting.forget(HERS, go_on=not is_first)
    assert archive.database["sealed"].count_documents({"staff_id": HERS}) == 0
    damage.forget(HERS.__eq__)
    assert damage.met() == []


def test_an_export_has_the_rest_and_says_so(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = archive.api.context.database.client
    kept, file = Kept(Stored.of(client), Audit(client.database), tmp_path), io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file))
    with pytest.raises(SystemExit, match="not in it: 1;"):
        command._export(Namespace(staff_id=HERS), kept, ErasureList(tmp_path))
    told = json.loads(ZipFile(file).read("person.json"))
    assert len(told["detections"]) == STAY


def test_what_is_remembered_has_a_bound_and_an_end(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = archive.database["sealed"].find_one({"_id": archive.whole["_id"]})
    assert damaged
    many = (damaged | {"_id": n} for n in range(MAX_LEFT_OUT + 1))
    with leaving_out() as left_out, pytest.raises(DamagedBlock):
        list(damage.opened(many))
    assert len(left_out) == MAX_LEFT_OUT
    assert len(damage.met()) == MAX_MET
    later = time.monotonic() + MET_SECONDS + 1
    monkeypatch.setattr(damage, "time", Mock(monotonic=lambda: later))
    assert damage.met() == []
