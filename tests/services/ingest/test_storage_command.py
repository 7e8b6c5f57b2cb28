"""./scripts/storage: seals at once, and tells what rows and sealed detections take."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo.database import Database

from ingest.commands import storage
from ingest.rules.request_parameters import TimeRange
from ingest.storage.sealed.sealed import Sealed
from tests.services.ingest.sealed.test_blocks import row

PEOPLE, EACH = ("a", 7), 3000
HOUR = 3600


@pytest.fixture
def full(database: Database[Any], monkeypatch: pytest.MonkeyPatch, mongod: str) -> Iterator[int]:
    """Give two people some days of detections, and the command a grace of seconds."""
    names = ("staff", "sealed", "latest", "directory")
    for name in names:
        database[name].delete_many({})
    now = int(time.time())
    for staff_id in PEOPLE:
        old = [row(now - HOUR * 80 + 4 * number) for number in range(EACH)]
        young = [row(now - HOUR + HOUR // 20 * number) for number in range(1, 20)]
        # Whoever names his detections without a time may repeat them for hours.
        named = [row(now - 8 * HOUR, id_time=1)]
        for one in (*old, *young, *named):
            one["staff_id"] = staff_id
        database["staff"].insert_many([*old, *young, *named])
        database["latest"].insert_one({"_id": staff_id, "recent": []})
    monkeypatch.setenv("MONGODB_URI", mongod)
    monkeypatch.setattr(storage, "GRACE_SECONDS", 1)
    monkeypatch.setattr("ingest.storage.sealed.sealed.GRACE_SECONDS", 1)
    yield now
    for name in names:
        database[name].delete_many({})


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["storage", *arguments])
    storage.main()


def test_it_seals_all_that_may_be_sealed_and_says_so(
    full: int,
    database: Database[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(storage, "PROGRESS_SECONDS", 0.0)
    run(monkeypatch, "seal", "--older-than", "0")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 2 people: 2,048 detections sealed, 0 rows deleted"
    assert "6,000 detections are sealed; their rows go in 1 s" in lines
    assert lines[-2:] == [
        "2 people: 0 detections sealed, 6,000 rows deleted",
        "all is sealed that may be",
    ]
    for staff_id in PEOPLE:
        left = database["staff"].distinct("timestamp", {"staff_id": staff_id})
        assert len(left) == 20
        assert min(left) == full - 8 * HOUR
        every = TimeRange(staff_id, 0, 2**40)
        assert Sealed(database["staff"]).count(every) == EACH + 20
    run(monkeypatch, "seal", "--older-than", "0")
    assert capsys.readouterr().out.splitlines() == [
        "2 people: 0 detections sealed, 0 rows deleted",
        "all is sealed that may be",
    ]


def test_it_seals_what_is_older_alone(
    full: int, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "seal", "--older-than", str(79 * HOUR))
    left = database["staff"].count_documents({"staff_id": 7})
    assert 900 <= EACH + 20 - left <= 910  # a row each 4 s, and the seconds until it ran


def test_what_cannot_be_an_age_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (("seal",), ("seal", "--older-than", "2h"), ("seal", "--older-than", "-1")):
        with pytest.raises(SystemExit) as refused:
            run(monkeypatch, *arguments)
        assert refused.value.code == 2


def test_it_tells_of_rows_and_of_what_is_sealed(
    full: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "seal", "--older-than", "0")
    capsys.readouterr()
    run(monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("embedded: 40 detections, ")
    assert " in rows; 6,000 detections, " in lines[0]
    assert [line.split(":")[0] for line in lines[1:]] == [
        "kept",
        "sealed",
        "a detection",
        "a sealed one",
        "a day",
        "free",
        "full in",
    ]
    assert lines[2] == "sealed: after 48 hours"
