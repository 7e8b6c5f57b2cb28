"""A correction of the past: what it changes, what it leaves alone, and how long it may take."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId, Timestamp
from flask import Flask
from pymongo.database import Database

from common.beacon import Beacon
from ingest.recording import corrections
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Place
from ingest.storage.directory.past_places import PastPlaces
from ingest.storage.sealed.past_places import Elsewhere
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed
from scripts.processes.waiting import eventually
from tests.service import Service, running
from tests.services.ingest.api.conftest import MAC, Api

OTHER = "AABBCCDDEEFF"
PLACE = {"level": "6", "location": "Library"}
PUT = f"/api/v1/beacons/{OTHER}?correct_past=1"
GO_ON = f"/api/v1/beacons/{OTHER}/correction"


def rows(count: int, location: str = "Old", people: int = 3) -> list[dict[str, Any]]:
    """Return detections of the beacon at another place."""
    now = int(time.time()) - 600
    return [
        {"_id": ObjectId(), "staff_id": n % people, "level": "6", "location": location}
        | {"timestamp": now - n, "mac": OTHER, "rssi": -60}
        for n in range(count)
    ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a correction answer with its progress after each few detections."""
    monkeypatch.setattr(corrections, "MOVE_SECONDS", 0)
    monkeypatch.setattr(corrections, "GROUP", 10)


def locations(database: Database[Any]) -> list[str]:
    return sorted(row["location"] for row in database["staff"].find({"mac": OTHER}))


@pytest.mark.long
def test_a_long_one_tells_what_remains_and_is_gone_on_with(
    api: Api, database: Database[Any], quick: None
) -> None:
    api.hear(0, OTHER)
    api.hear(0, MAC)
    database["staff"].insert_many(rows(24))
    url = "/extractbeacon?staff_id=0&start_time=0&end_time=4102444800"
    api.client.get(url)  # cached from here on
    answers = [api.client.put(PUT, json=PLACE)]
    for remaining in (15, 5):
        assert (answers[-1].status_code, answers[-1].json["remaining"]) == (202, remaining)  # type: ignore[index]
        # What every reader is told is what is stored, after each part.
        history = api.client.get(url).json["location"]  # type: ignore[index]
        shown = {(row["timestamp"], row["location"]) for row in history}
        stored = database["staff"].find({"staff_id": 0})
        assert shown == {(detection["timestamp"], detection["location"]) for detection in stored}
        answers.append(api.client.post(GO_ON))
    # The last group, and no look.
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    answers.append(api.client.post(GO_ON))
    last = answers[-1].json
    assert last
    assert last.pop("correction")
    assert last == {"mac": OTHER, "x": None, "y": None, "aliases": [], "corrected": 0} | PLACE
    assert sum(answer.json["corrected"] for answer in answers) == 25  # type: ignore[index]
    assert set(locations(database)) == {"Library"}


def test_a_correction_is_foreseen_audited_and_undone(
    api: Api, database: Database[Any], quick: None
) -> None:
    api.hear(7, MAC)
    before = rows(14) + rows(9, "Older", people=1)
    del before[0]["location"]  # of an older database
    database["staff"].insert_many(before)
    foreseen = api.get(f"/beacons/{OTHER}/correction", **PLACE)
    assert (foreseen["detections"], foreseen["people"]) == (23, 3)
    assert foreseen["staff"][0] == {"staff_id": 0, "detections": 14}
    began = api.client.put(PUT, json=PLACE).json
    assert began
    name = began["correction"]
    corrected, answer = began["corrected"], began
    while "remaining" in answer:
        piece = api.client.post(f"{GO_ON}?id={name}").json
        assert piece
        answer, corrected = piece, corrected + piece["corrected"]
    assert corrected == 23
    assert api.get(f"/beacons/{OTHER}/correction", **PLACE)["detections"] == 0
    newer = rows(1, "Library") + rows(1, "Library", people=1)
    database["staff"].insert_many(newer)  # what was stored there since is no part of it
    undone, answer = 0, {"remaining": 1}
    while "remaining" in answer:
        piece = api.client.delete(f"{GO_ON}?id={name}").json
        assert piece
        answer, undone = piece, undone + piece["undone"]
    assert undone == 23
    places = {row["_id"]: row.get("location") for row in database["staff"].find({"mac": OTHER})}
    assert places == {row["_id"]: row.get("location") for row in before + newer}
    assert not database["staff"].count_documents({"was": {"$exists": True}})
    noted = [(entry["what"], entry["details"]) for entry in api.get("/audit", limit=30)["data"]]
    noted = [entry for entry in noted if entry[1].get("correction") == name]
    assert noted[-1] == (
        "beacon put",
        PLACE | {"x": None, "y": None, "correct_past": True} | {"correction": name},
    )
    counts = [(what, details.get("detections", 0)) for what, details in noted]
    assert sum(count for what, count in counts if what == "past corrected") == 23
    assert sum(count for what, count in counts if what == "past given back") == 23
    assert api.client.delete(GO_ON).status_code == 400
    assert api.client.delete(f"{GO_ON}?id=x").status_code == 400


def test_what_was_corrected_again_is_not_undone(app: Flask, database: Database[Any]) -> None:
    database["staff"].insert_many(rows(3))
    past = PastPlaces(database["staff"])
    undo = corrections.Corrections(past, Beacons(database), 1).undo
    for location in ("Wrong", "Right"):
        places = [Place("6", location)]
        assert past.move(past.elsewhere(OTHER, places, 10), OTHER, places, location) == 3
    assert undo([OTHER], "Wrong") == (0, None)
    assert locations(database) == ["Right"] * 3
    assert undo([OTHER], "Right") == (3, None)
    assert locations(database) == ["Wrong"] * 3


def test_what_is_sealed_is_corrected_in_cached_histories_too(
    api: Api, database: Database[Any]
) -> None:
    staff = database["staff"]
    for ago in range(700, 600, -2):
        api.hear(0, OTHER, ago=ago)
    newest = staff.find_one(sort=[("timestamp", -1)])
    assert newest
    # The others were stored a while ago.
    staff.update_many({"_id": {"$ne": newest["_id"]}}, {"$set": {"stored": Timestamp(1000, 1)}})
    sealer, now = Sealed(staff), int(time.time())
    while sealer.seal(0, now, now):
        pass
    assert sum(piece.deleted for piece in sealer.settle(0, now + GRACE_SECONDS + 1)) > 20
    url = "/extractbeacon?staff_id=0&start_time=0&end_time=4102444800"
    tags = [api.client.get(url).headers["ETag"]]
    correction = corrections.Corrections(PastPlaces(staff), Beacons(database), 5)
    # As if the rows had been corrected, and nothing was left to do but this.
    places = Elsewhere([OTHER], [Place(**PLACE)])
    for blocks in PastPlaces(staff).sealed.find(places):
        assert PastPlaces(staff).sealed.move(blocks, places, Place(**PLACE), "c1") > 20
    answer = api.client.get(url, headers={"If-None-Match": tags[0]})
    assert answer.status_code == 200
    assert [row["level"] for row in answer.json["location"]].count("6") > 20  # type: ignore[index]
    tags.append(answer.headers["ETag"])
    assert correction.undo([OTHER], "c1")[0] > 20
    answer = api.client.get(url, headers={"If-None-Match": tags[1]})
    assert [row["level"] for row in answer.json["location"]].count("6") == 0  # type: ignore[index]
    assert answer.headers["ETag"] not in tags


def test_there_is_nothing_to_go_on_with_for_an_unknown_beacon(api: Api) -> None:
    assert api.client.post(GO_ON).status_code == 404


@pytest.mark.long
def test_an_edit_between_the_passes_wins(api: Api, database: Database[Any]) -> None:
    database["staff"].insert_many(rows(5))
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(api.client.put, PUT, json=PLACE)
        eventually(lambda: locations(database) == ["Library"] * 5)
        # Another service's edit, what it stored since, and what came late with the first place.
        Beacons(database).put([Beacon(OTHER, "6", "Later")])
        database["staff"].insert_many(rows(2, "Later") + rows(2, "Old"))
        time.sleep(2 * corrections.LOOK_SECONDS)
        assert not asked.done()
        Beacons(database).put([Beacon(OTHER, "6", "Latest")])
        database["staff"].insert_many(rows(2, "Latest"))
    done = asked.result()
    assert done.status_code == 200
    assert done.json is not None
    assert done.json["corrected"] == 7
    assert locations(database) == ["Later"] * 2 + ["Latest"] * 2 + ["Library"] * 7
    assert api.get(f"/beacons/{OTHER}")["location"] == "Latest"


@pytest.fixture
def service(mongod: str, database: Database[Any], tmp_path: Path) -> Iterator[Service]:
    for name in ("staff", "latest", "notes", "beacons"):
        database[name].delete_many({})
    with running(Service(mongod, tmp_path)) as (service,):
        yield service


@pytest.mark.long
def test_forty_thousand_detections_fit_the_memory_and_the_time(
    service: Service, database: Database[Any]
) -> None:
    total, people = 40_000, 1_000
    for _ in range(total // 20_000):
        database["staff"].insert_many(rows(20_000, people=people), ordered=False)
    with ThreadPoolExecutor() as threads:
        list(threads.map(service.detect, range(people)))  # they have an entry in `latest`
    cursor = service.read("/api/v1/changes").text.split('"')[-2]
    before = memory_mib(service)
    corrected, status, longest, peak, late = 0, 202, 0.0, 0.0, False
    until = time.monotonic() + 300
    while status != 200:
        began = time.monotonic()
        call = service.session.post if corrected else service.session.put
        answer = call(service.url + (GO_ON if corrected else PUT), json=PLACE, timeout=60)
        longest = max(longest, time.monotonic() - began)
        status = answer.status_code
        # A database that is late on a busy machine: some are rewritten, and the next call goes on.
        late = late or status == 503
        assert status in (200, 202, 503), answer.text
        assert time.monotonic() < until
        corrected += answer.json().get("corrected", 0)
        peak = max(peak, memory_mib(service))
        assert service.detect(1).status_code == 200
    print(f"\n{longest:.1f} s for the longest answer, {before:.1f} to {peak:.1f} MiB")
    assert corrected == total or late
    assert set(locations(database)) == {"Library"}
    assert longest < 29  # the gateway gives it 30 s
    # A page of a correction, and what the notes make of it (docs/memory.md).
    assert peak < before + 8
    assert "corrected" in service.read("/api/v1/changes", after=cursor, limit=1000).text


def memory_mib(service: Service) -> float:
    """Return the resident memory of a service's processes together."""
    pids = [service.pid, *map(int, children(service.pid))]
    texts = [Path(f"/proc/{pid}/status").read_text("ascii") for pid in pids]
    return sum(int(text.split("RssAnon:")[1].split()[0]) for text in texts) / 1024


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
