"""Who is forgotten is nowhere any more, and whoever comes back is new."""

import csv
import io
import json
import time
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from flask import Flask
from pymongo.database import Database

from common import schema
from common.erasures import MAX_ERASURES, Erasures
from ingest.commands import person
from ingest.errors import StoreUnavailable
from ingest.recording import erasure_list, forgetting
from ingest.recording.erasure_list import ErasureList
from ingest.recording.forgetting import Forgetting, Stored
from ingest.recording.kept import Kept
from ingest.recording.outcome import Outcome
from ingest.recording.spool import Spool
from ingest.rules.detection_identity import event_key
from ingest.rules.request_parameters import MAX_UNIX_SECONDS, TimeRange
from ingest.rules.retention import DAY_SECONDS
from ingest.storage.detections import documents
from ingest.storage.sealed.border import Border
from ingest.storage.sealed.sealed import Sealed
from scripts.processes.waiting import eventually
from tests.services.ingest.api import test_changes as changes
from tests.services.ingest.api.conftest import MAC, Api

HER, HIM = "her-9d1c", 41
FORGET = "/api/v1/people/forgotten"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "SETTLE_SECONDS", -1)


def detection(staff_id: Any, received_at: float) -> dict[str, Any]:
    timestamp = int(received_at)
    key = event_key(str(ObjectId()), timestamp)
    return documents.document(staff_id, ("4", "Lobby B"), timestamp, -60, MAC, received_at, key)


def readable(database: Database[Any]) -> str:
    """Return all that can be read, but for the audit, which no service may change."""
    names = (collection.name for collection in schema.COLLECTIONS)
    return "".join(repr(row) for name in names if name != "audit" for row in database[name].find())


def forget(api: Api, staff_id: Any) -> int:
    answer = api.client.post(FORGET, json={"staff_id": staff_id})
    assert answer.status_code == 200, answer.text
    return int(json.loads(answer.data)["deleted"])


def told(api: Api) -> str:
    """Return all that is told of people."""
    paths = ("/staff", "/now", "/people", "/people/unnamed", f"/staff/{HER}/detections")
    texts = [api.client.get(f"/api/v1{path}").text for path in paths]
    texts.append(api.client.get("/retrieveformonitoring").text)
    query = {"staff_id": HER, "start_time": 0, "end_time": 4102444800}
    return "".join([*texts, api.client.get("/extractbeacon", query_string=query).text])


def test_nothing_is_left_of_a_person_and_all_of_the_others(
    api: Api, database: Database[Any]
) -> None:
    database["sealed"].delete_many({})
    now = time.time()
    database["staff"].insert_many([detection(HER, now - 3 * DAY_SECONDS - n) for n in range(60)])
    sealer = Sealed(database["staff"])
    sealer.seal(HER, int(now - DAY_SECONDS), int(now - 200))
    assert sum(piece.deleted for piece in sealer.settle(HER, int(now))) > 0
    border = Border(database)
    assert border.advance(border.turn(), int(now - DAY_SECONDS), HER)
    assert database["sealed"].count_documents({"staff_id": HER}) == 2  # the block, and its head
    assert database["staff"].count_documents({"staff_id": HER}) < 60
    for staff_id in (HER, HIM):
        timestamp = api.hear(staff_id)
        body: dict[str, Any] = {"name": f"name of {staff_id}", "team": "Cleaning"}
        assert api.client.put(f"/api/v1/people/{staff_id}", json=body).status_code == 200
        body = {"state": "gone_home", "timestamp": timestamp}
        path = f"/api/v1/staff/{staff_id}/lost_contact"
        assert api.client.put(path, json=body).status_code == 200
    api.context.people.notes.bring_up()
    assert HER in told(api)
    before = told(api)
    assert forget(api, HER) == 61
    assert f"name of {HER}" not in told(api)
    of_him = f'"staff_id":{HIM}'
    assert told(api).count(of_him) == before.count(of_him) >= 4
    assert HER not in readable(database)
    assert database["staff"].count_documents({"staff_id": HIM}) == 1
    assert api.get(f"/people/{HIM}")["name"] == f"name of {HIM}"
    assert forget(api, HER) == 0


def test_the_audit_tells_that_somebody_was_forgotten_and_not_who(
    api: Api, database: Database[Any]
) -> None:
    api.hear(HER)
    forget(api, HER)
    [entry] = database["audit"].find().sort("_id", -1).limit(1)
    assert (entry["what"], entry["of"], entry["details"]) == (
        "person forgotten",
        "",
        {"detections": 1},
    )


def test_what_came_before_is_stored_no_more_and_what_comes_later_is(
    api: Api, database: Database[Any]
) -> None:
    forget(api, HER)
    recorder = api.context.recording.recorder
    old, of_him, new = (
        detection(HER, time.time() - 60),
        detection(HIM, time.time() - 60),
        detection(HER, time.time() + 1),
    )
    assert recorder.commit([old, of_him, new]) == [Outcome.STORED] * 3
    stored = {row["_id"] for row in database["staff"].find()}
    assert stored == {of_him["_id"], new["_id"]}
    api.hear(HER)
    assert database["staff"].count_documents({"staff_id": HER}) == 2


def test_what_is_deleted_while_more_comes_is_told_in_the_end(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "DELETE_SECONDS", 0)
    database["staff"].insert_many([detection(HER, time.time() - n) for n in range(1, 1201)])
    begun = {"staff_id": HER}
    answers = [api.client.post(FORGET, json=begun | {"go_on": n > 0}) for n in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert [json.loads(answer.data)["remaining"] for answer in answers] == [700, 200, 0]
    assert forget(api, HER) == 0


def test_what_was_on_its_way_goes_too_and_what_came_since_stays(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "SETTLE_SECONDS", 1.5)
    begun = api.client.post(FORGET, json={"staff_id": HER})
    assert (begun.status_code, begun.json) == (202, {"deleted": 0, "remaining": 0})
    on_its_way, new = detection(HER, time.time() - 2), detection(HER, time.time() + 1)
    database["staff"].insert_many([on_its_way, new])  # by who had not seen the list yet
    going_on = {"staff_id": HER, "go_on": True}
    deleted = []

    def is_done() -> bool:
        answer = api.client.post(FORGET, json=going_on)
        deleted.append(json.loads(answer.data)["deleted"])
        return answer.status_code == 200

    eventually(is_done, 10)
    assert sum(deleted) == 1
    assert [row["_id"] for row in database["staff"].find()] == [new["_id"]]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "staff_id"),
        ({"staff_id": "a b"}, "staff_id"),
        ([], "body"),
        ({"staff_id": 7, "go_on": "perhaps"}, "go_on"),
    ],
)
def test_a_bad_body_is_refused_by_name(api: Api, body: Any, reason: str) -> None:
    answer = api.client.post(FORGET, json=body)
    assert answer.status_code == 400
    assert json.loads(answer.data)["errors"][0]["field"] == reason


def test_what_waits_goes_with_its_bytes_while_the_database_is_away(
    api: Api, tmp_path: Path
) -> None:
    recording = api.context.recording
    own, erasures = recording.spools.own, ErasureList(tmp_path)
    api.context.database.availability.lost(StoreUnavailable("test"))
    recording.drain.close()  # its own look would be as quick as ours
    own.append([detection(HER, time.time() - n) for n in range(300)])
    own.append([detection(HIM, time.time()), detection(HER, time.time() + 3600)])
    assert HER.encode() in bytes_of(tmp_path)
    erasures.add(HER)
    recording.spools.forget(erasures.current())
    rows = [row["staff_id"] for _, row in own.oldest(500) if row]
    assert (rows, len(own)) == ([HIM, HER], 2)
    erasures.add(HER)  # nobody else is
    known = erasures.current()
    recording.spools.forget(known._replace(times=dict.fromkeys(known.times, 9e9), newest=9e9))
    assert HER.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize("staff_id", [HER, HIM, 2**40])
def test_what_is_set_aside_goes_too_and_in_damaged_files_the_id(
    tmp_path: Path, staff_id: Any
) -> None:
    path, other = tmp_path / "spool.db", detection("other", 1_700_000_000)
    spool = Spool(path, 100)
    old = detection(staff_id, 1_700_000_000)
    spool.append([old, other, detection(staff_id, 1_700_000_001)])
    numbers = [number for number, _ in spool.oldest(9)]
    spool.put_aside(numbers[:2])
    spool.remove(numbers[:2])
    spool.close()
    damaged = path.with_name(f"{path.name}.damaged-1")
    half = documents.encoded(old)[:-9]  # as a torn page leaves it
    damaged.write_bytes(b"no page of SQLite" + half + documents.encoded(other))
    assert staff_id in dict(documents.staff_ids_within(damaged.read_bytes()))
    erasures = ErasureList(tmp_path)
    erasures.add(staff_id)
    spool = Spool(path, 100)  # as its service starts again
    spool.forget(erasures.current())
    assert (len(spool), spool.set_aside) == (0, 2)
    spool.close()
    assert b"other" in path.read_bytes()
    assert [kept for kept, _ in documents.staff_ids_within(bytes_of(tmp_path))].count(staff_id) == 0
    assert damaged.read_bytes().endswith(documents.encoded(other))


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def test_all_services_let_go_of_their_caches(
    api: Api, app: Flask, database: Database[Any], tmp_path: Path
) -> None:
    histories, people = api.context.histories, api.context.people
    api.hear(HER)
    api.hear(HIM)
    told(api)
    cached = histories.cache._cached
    eventually(lambda: told(api) and HER in cached, 10)
    # As another service or the command does: this one sees it in the list alone.
    Forgetting(ErasureList(tmp_path), Stored.of(api.context.database.client)).forget(
        HER, go_on=False
    )
    eventually(lambda: HER not in cached, 10)
    eventually(lambda: not any(HER in str(window) for window in histories.cache._windows), 10)
    eventually(lambda: all(at.staff_id != HER for at in people.last_positions._people.staff), 10)
    assert HER not in told(api).replace(f"member {HER}", "")  # of whom nothing is kept


def test_the_change_feed_tells_nothing_of_before(api: Api) -> None:
    _, cursor = changes.read(api)
    api.hear(HER)
    api.hear(HIM)
    forget(api, HER)
    api.hear(HER, event_id="back")
    lines, _ = changes.read(api, after=cursor)
    assert [line["staff_id"] for line in lines] == [HIM, HER]


def test_a_restored_database_forgets_again_whom_its_copy_has(
    api: Api, database: Database[Any], tmp_path: Path
) -> None:
    api.hear(HER)
    began = time.time()
    api.client.put(f"/api/v1/people/{HER}", json={"name": "Her"})
    api.context.people.notes.bring_up()
    copy = {name: list(database[name].find()) for name in ("staff", "latest", "people", "sealed")}
    forget(api, HER)
    for name, rows in copy.items():
        database[name].delete_many({})
        if rows:
            database[name].insert_many(rows)
    back = detection(HER, time.time() + 1)
    database["staff"].insert_one(back)
    again = Forgetting(ErasureList(tmp_path), Stored.of(api.context.database.client))
    assert again.forget_again(time.time() + 1 + forgetting.GO_ON_SECONDS) == 0
    assert database["staff"].count_documents({}) == 2
    assert again.forget_again(began) == 1
    assert [row["_id"] for row in database["staff"].find()] == [back["_id"]]
    assert not list(database["people"].find())


def test_nothing_is_lost_of_whoever_is_back_and_sealed(
    api: Api, database: Database[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, erasures = Stored.of(api.context.database.client), ErasureList(tmp_path)
    until = erasures.add(HER)
    api.client.put(f"/api/v1/people/{HER}", json={"name": "Her"})
    long_ago = int(until) - 3 * DAY_SECONDS
    backlog = [
        # Of a phone that kept them; every other one came before: as a sealer may have read them.
        detection(HER, until + (-1) ** n * 60) | {"timestamp": long_ago + n}
        for n in range(60)
    ]
    database["staff"].insert_many(backlog)
    stored.sealed.seal(HER, int(until) - DAY_SECONDS, int(until) + 200)
    database["staff"].delete_many({"_id": {"$in": [row["_id"] for row in backlog[:20]]}})
    assert Forgetting(erasures, stored).forget_again(until + 1) == 1
    everything = TimeRange(HER, 0, MAX_UNIX_SECONDS)
    left = [row.timestamp for row in stored.sealed.newest_first(everything)]
    assert left == [row["timestamp"] for row in reversed(backlog[::2])]
    assert api.get(f"/people/{HER}")["name"] == "Her"


def test_all_that_is_kept_is_told(api: Api, database: Database[Any], tmp_path: Path) -> None:
    api.hear(HER)
    api.client.put(f"/api/v1/people/{HER}", json={"name": "=Her", "note": "süß"})
    api.hear(HIM)
    api.context.recording.drain.close()
    api.context.recording.spools.own.append([detection(HER, 1_700_000_000.5)])
    file = io.BytesIO()
    context = api.context
    Kept(Stored.of(context.database.client), context.access.audit, tmp_path).write(HER, file)
    with zipfile.ZipFile(file) as archive:
        whole = json.loads(archive.read("person.json"))
        table = list(csv.DictReader(io.StringIO(archive.read("detections.csv").decode())))
    assert whole["person"]["note"] == "süß"
    assert whole["audit"][-1]["what"] == "person put"
    assert [row["kept"] for row in whole["detections"]] == ["waiting", "stored"]
    assert table[0]["received_at"] == "1700000000.5"
    assert {row["mac"] for row in table} == {MAC}
    assert str(HIM) not in {str(row.get("staff_id")) for row in whole["detections"]}


def test_a_long_history_is_told_piece_by_piece(
    api: Api, database: Database[Any], tmp_path: Path
) -> None:
    rows = [detection(HER, time.time() - n) for n in range(8_000)]
    database["staff"].insert_many(rows)
    del rows
    context = api.context
    kept = Kept(Stored.of(context.database.client), context.access.audit, tmp_path)
    with (tmp_path / "person.zip").open("wb") as file:
        tracemalloc.start()
        kept.write(HER, file)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2 * 2**20  # 400 bytes each would be more
    with zipfile.ZipFile(tmp_path / "person.zip") as archive:
        assert len(archive.read("detections.csv").splitlines()) == 8_001


def test_the_list_is_bounded_and_holds_no_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    erasures = ErasureList(tmp_path)
    monkeypatch.setattr(erasure_list, "MAX_ERASURES", 2)
    until = erasures.add(HER)
    erasures.add(HIM)
    assert erasures.add(HER) >= until  # once more is no more
    with pytest.raises(StoreUnavailable, match="is full"):
        erasures.add("third")
    assert HER not in (text := erasures.path.read_text())
    assert text.count("\n") == 6  # a line for each of both
    assert MAX_ERASURES == 5000


def test_a_copy_of_the_list_is_taken_where_it_was_lost(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    lost, there = ErasureList(first), ErasureList(second)
    until = lost.add(HER)
    copy = lost.current()
    there.take(copy)
    assert there.current().until(HER) == until
    later = there.add(HIM)
    there.take(copy)  # once more
    assert (there.current().until(HER), there.current().until(HIM)) == (until, later)
    with pytest.raises(StoreUnavailable, match="no later state"):
        there.take(Erasures("ab", copy.times))


def test_a_list_that_is_damaged_holds_as_it_was_read_and_takes_nobody(tmp_path: Path) -> None:
    erasures = ErasureList(tmp_path)
    erasures.add(HER)
    known: Erasures = erasures.current()
    for content in ("", "{}", '{"salt": "x", "times": {}}', '{"salt": "", "times": {"a": "b"}}'):
        erasures.path.write_text(content)
        assert erasures.current() is known
        with pytest.raises(StoreUnavailable, match="no list of erasures"):
            erasures.add(HIM)
    assert known.covers(HER, datetime.now(UTC).timestamp() - 1)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2026-11-28T17-24-43Z", 1795886683), ("1795886683", 1795886683)]
)
def test_a_restore_says_since_when_by_the_name_of_its_backup(text: str, seconds: int) -> None:
    assert person._parser().parse_args(["again", "--since", text]).since == seconds


def test_a_moment_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        person._parser().parse_args(["again", "--since", "yesterday"])
    assert "as 2026-11-28T17-24-43Z, or unix seconds" in capsys.readouterr().err
