"""/staff, /now and /staff/<staff_id>/detections."""

import csv
import io
import json
import threading
import time
import tracemalloc
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from bson import ObjectId
from pymongo.database import Database

from ingest.api.histories import staff_detections as history
from ingest.errors import StoreUnavailable
from ingest.storage.detections.detections import Detections
from ingest.web import long_answers
from scripts.processes.waiting import eventually
from tests.services.ingest.api.conftest import MAC, Api


def test_the_latest_of_everybody(api: Api) -> None:
    heard = api.hear(7)
    api.hear(7, ago=100)
    api.hear("SDA-001", "FFFFFFFFFFFE", ago=61)
    api.hear(2, ago=901)
    answer = api.get("/staff")
    assert abs(answer["as_of"] - time.time()) < 5
    assert [row["staff_id"] for row in answer["data"]] == [2, 7, "SDA-001"]
    assert [row["freshness"] for row in answer["data"]] == ["stale", "now", "recent"]
    seven = answer["data"][1]
    assert seven["timestamp"] == heard
    assert (seven["level"], seven["location"], seven["mac"]) == ("4", "Lobby B", MAC)
    assert [row["known"] for row in answer["data"]] == [True, True, False]


def test_a_clock_ahead_is_not_somebody_here_for_a_day(api: Api) -> None:
    api.hear(1, ago=-80_000)
    assert api.get("/staff")["data"][0]["age_seconds"] <= 5


def test_pages_of_everybody(api: Api) -> None:
    for staff_id in (10, "b", 9, "a", 11):
        api.hear(staff_id)
    everybody = api.get("/staff")["data"]
    assert [row["staff_id"] for row in everybody] == [9, 10, 11, "a", "b"]
    staff_ids, path = [], "/api/v1/staff?limit=2"
    while path:
        answer = api.client.get(path)
        assert answer.json is not None
        assert len(answer.json["data"]) <= 2
        staff_ids += [row["staff_id"] for row in answer.json["data"]]
        path = answer.headers.get("Link", "").removeprefix("<").removesuffix('>; rel="next"')
    assert staff_ids == [9, 10, 11, "a", "b"]
    assert [row["staff_id"] for row in api.get("/staff", after=12)["data"]] == ["a", "b"]
    assert api.get("/staff", after="b")["data"] == []
    assert api.client.get("/api/v1/staff?limit=0").status_code == 400


def test_now_by_level(api: Api) -> None:
    api.hear(1)
    api.hear(2)
    api.hear(3, "FFFFFFFFFFFE")
    api.hear(4, ago=1000)
    levels = api.get("/now")["levels"]
    assert {level["level"]: [s["staff_id"] for s in level["staff"]] for level in levels} == {
        "4": [1, 2],
        "unknown": [3],
    }
    assert [level["level"] for level in api.get("/now", level="4")["levels"]] == ["4"]
    assert api.get("/now", level="9")["levels"] == []


def test_pages_of_now_tell_each_person_once(api: Api) -> None:
    """Also of whoever changes the level, or comes, between two of them."""
    library = {"level": "2", "location": "Library"}
    assert api.client.put("/api/v1/beacons/AABBCCDDEEFF", json=library).status_code == 200
    for staff_id in (1, 3, 5, 7):
        api.hear(staff_id, ago=300)
    api.hear(6, ago=1000)
    seen: list[tuple[str, int]] = []
    path = "/api/v1/now?limit=2"
    while path:
        answer = api.client.get(path)
        assert answer.json is not None
        people = [
            (level["level"], row["staff_id"])
            for level in answer.json["levels"]
            for row in level["staff"]
        ]
        assert len(people) <= 2
        if not seen:
            api.hear(7, "AABBCCDDEEFF")  # the first page ended before level 4 did
            api.hear(8)
        seen += people
        path = answer.headers.get("Link", "").removeprefix("<").removesuffix('>; rel="next"')
    assert sorted(seen, key=itemgetter(1)) == [("4", 1), ("4", 3), ("4", 5), ("2", 7), ("4", 8)]
    answer = api.client.get("/api/v1/now?level=4&limit=1&after=3")
    assert "level=4" in answer.headers["Link"]
    assert api.client.get("/api/v1/now?limit=0").status_code == 400


@pytest.mark.parametrize("path", ["/staff", "/now", "/staff/1/detections", "/beacons", "/coverage"])
def test_what_did_not_change_is_not_sent_again(api: Api, path: str) -> None:
    """On a busy machine something may change between two reads: a freshness, a turn of a tag."""
    api.hear(1)

    def is_unchanged() -> bool:
        tag = api.client.get(f"/api/v1{path}").headers["ETag"]
        again = api.client.get(f"/api/v1{path}", headers={"If-None-Match": tag})
        assert again.status_code == 200 or (again.data, again.headers["ETag"]) == (b"", tag)
        return again.status_code == 304

    eventually(is_unchanged)


@pytest.mark.parametrize("path", ["/staff", "/now", "/staff/1/detections"])
def test_a_detection_changes_the_tag(api: Api, path: str) -> None:
    api.hear(1)
    first = api.client.get(f"/api/v1{path}")
    api.hear(1, event_id="another", rssi=-1)
    again = api.client.get(f"/api/v1{path}", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200


def test_now_has_the_lowest_level_first(api: Api) -> None:
    levels = ["B2", "G", "2", "10", "Roof", "unknown"]
    for number, level in enumerate(reversed(levels)):
        mac = f"AABBCCDDEE{number:02}"
        if level != "unknown":
            api.client.put(f"/api/v1/beacons/{mac}", json={"level": level, "location": "Lift"})
        api.hear(number, mac)
    assert [entry["level"] for entry in api.get("/now")["levels"]] == levels
    directory = ["B2", "G", "2", "4", "10", "Roof"]  # the fourth is of the fixture
    for path in ("/beacons", "/coverage"):  # in the order in which the page shows them
        assert [row["level"] for row in api.get(path)["data"]] == directory


@pytest.mark.parametrize("at_once", [3, 500])
def test_pages_hold_each_detection_once_also_within_a_second(
    api: Api, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(history, "READ_AT_ONCE", at_once)
    base = int(time.time()) - 100
    for number in range(30):  # ten a second, each with a strength of its own
        api.hear(1, event_id=f"e{number}", timestamp=base + number // 10, rssi=-1 - number)
    whole = {"from": base, "to": base + 9}
    everything = api.get("/staff/1/detections", **whole)
    assert (everything["truncated"], everything["next"]) == (False, None)
    assert {row["rssi"] for row in everything["data"]} == {-1 - number for number in range(30)}
    for limit in (1, 4, 10, 29, 30):
        pages, cursor = [], ""
        while cursor is not None:
            page = api.get("/staff/1/detections", limit=limit, cursor=cursor, **whole)
            assert page["truncated"] == (page["next"] is not None)
            assert len(page["data"]) <= limit
            pages += page["data"]
            cursor = page["next"]
            api.hear(1, event_id=f"{limit} {len(pages)}".replace(" ", "-"))
        assert pages == everything["data"]


@pytest.mark.long
def test_the_largest_page_takes_little_memory(api: Api, database: Database[Any]) -> None:
    api.hear(1)
    [one] = database["staff"].find()
    rows = [{"_id": ObjectId(), "timestamp": one["timestamp"] - n} for n in range(1, 3000)]
    database["staff"].insert_many(one | row for row in rows)
    assert len(api.get("/staff/1/detections", limit=3000)["data"]) == 3000
    tracemalloc.start()
    try:
        answer = api.client.get("/api/v1/staff/1/detections?limit=3000")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(answer.data) + 1.5 * 2**20


def test_a_range_in_every_form_of_time(api: Api) -> None:
    for timestamp in (1_700_000_000, 1_700_000_010, 1_700_000_020):
        api.hear(1, timestamp=timestamp)
    for moment in (
        "1700000010",
        "1700000010000",
        "2023-11-14T22:13:30Z",
        "2023-11-15T06:13:30+08:00",
    ):
        assert len(api.get("/staff/1/detections", **{"from": moment})["data"]) == 2
        assert len(api.get("/staff/1/detections", to=moment)["data"]) == 2
        inside = api.get("/staff/1/detections", **{"from": moment, "to": moment})["data"]
        assert [row["timestamp"] for row in inside] == [1_700_000_010]
        assert inside[0]["time"] == "2023-11-14T22:13:30Z"


def test_plan_positions_come_from_the_directory(api: Api) -> None:
    api.hear(1)
    assert "x" not in api.get("/staff/1/detections")["data"][0]
    place = {"level": "4", "location": "Lobby B", "x": 12.5, "y": 3}
    assert api.client.put(f"/api/v1/beacons/{MAC}", json=place).status_code == 200
    row = api.get("/staff/1/detections")["data"][0]
    assert (row["x"], row["y"]) == (12.5, 3)
    answer = api.client.get("/api/v1/staff/1/detections?format=geojson")
    assert answer.json is not None
    assert answer.json["features"][0]["geometry"]["coordinates"] == [12.5, 3]


def test_a_download_is_whole(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("READ_AT_ONCE", 4), ("FILE_AT_ONCE", 3)):
        monkeypatch.setattr(history, name, count)
    base = int(time.time()) - 100
    for number in range(10):
        api.hear(1, event_id=f"e{number}", timestamp=base + number // 3, rssi=-1 - number)
    answer = api.client.get("/api/v1/staff/1/detections?format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert sorted(int(row["rssi"]) for row in rows) == list(range(-10, 0))
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert answer.headers["X-Truncated"] == "false"
    collection = api.client.get("/api/v1/staff/1/detections?format=geojson").json
    assert collection is not None
    assert len(collection["features"]) == 10
    monkeypatch.setattr(long_answers, "_places", threading.BoundedSemaphore(1))
    with long_answers._places:  # another long one is under way
        answer = api.client.get("/api/v1/staff/1/detections?format=csv")
        assert (answer.status_code, answer.json and answer.json["code"]) == (
            429,
            "too_many_waiting",
        )
        assert "Content-Disposition" not in answer.headers
        assert api.client.get("/api/v1/staff/1/detections?format=csv&limit=3").status_code == 200
    api.client.get("/api/v1/staff/1/detections?format=csv", buffered=False).close()  # who gives up
    assert api.client.get("/api/v1/staff/1/detections?format=csv").status_code == 200


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("", "staff-7"),
        ("from=2026-11-21T01:00:00Z", "staff-7"),
        ("from=2026-11-21T01:00:00Z&to=2026-11-21T02:00:00Z", "staff-7_2026-11-21_0100-0200"),
        (
            "from=2026-11-21T01:00:00Z&to=2026-11-21T02:00:30Z&zone=Asia/Singapore",
            "staff-7_2026-11-21_0900-1000",
        ),
        (
            "from=2026-11-21T15:00:00Z&to=2026-11-21T17:00:00Z&zone=Asia/Singapore",
            "staff-7_2026-11-21_2300-2026-11-22_0100",
        ),
    ],
)
def test_a_download_says_whose_it_is(api: Api, query: str, name: str) -> None:
    api.hear(7, timestamp=1_763_688_600)  # long before
    api.hear(7, timestamp=1_795_224_600)  # 2026-11-21T01:30Z
    for kind in ("csv", "geojson"):
        answer = api.client.get(f"/api/v1/staff/7/detections?format={kind}&{query}")
        assert answer.status_code == 200, answer.text
        disposition = answer.headers["Content-Disposition"]
        assert disposition == f'attachment; filename="{name}.{kind}"'


def test_each_row_of_a_download_says_who_and_when(api: Api) -> None:
    api.hear(7, timestamp=1_763_688_600)
    query = "format=csv&zone=Asia/Singapore"
    text = api.client.get(f"/api/v1/staff/7/detections?{query}").text
    [row] = csv.DictReader(io.StringIO(text))
    assert list(row)[:7] == ["staff_id", "time", "local_time", "level", "location", "mac", "rssi"]
    assert row["staff_id"] == "7"
    assert row["time"] == "2025-11-21T01:30:00Z"
    assert row["local_time"] == "2025-11-21T09:30:00+08:00"
    collection = api.client.get(
        "/api/v1/staff/7/detections?format=geojson&zone=Asia/Singapore"
    ).json
    assert collection is not None
    properties = collection["features"][0]["properties"]
    assert (properties["staff_id"], properties["local_time"]) == (7, row["local_time"])
    for wrong in ("no%20zone", "No/Such", "../UTC", "Asia", "Etc/Unknown"):
        answer = api.client.get(f"/api/v1/staff/7/detections?format=csv&zone={wrong}")
        assert answer.status_code == 400
        assert "zone" in answer.get_json()["detail"]


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("Asia/Calcutta", "07:00:00+05:30"),
        ("Asia/Saigon", "08:30:00+07:00"),
        ("Asia/Rangoon", "08:00:00+06:30"),
        ("Europe/Kiev", "03:30:00+02:00"),
        ("America/Buenos_Aires", "22:30:00-03:00"),
        ("US/Pacific", "17:30:00-08:00"),
        ("UTC", "01:30:00+00:00"),
    ],
)
def test_a_zone_is_known_by_all_its_names_whatever_the_machine_has(
    api: Api, zone: str, local: str
) -> None:
    """Chromium says the older ones; Debian 13 has them in a package of their own."""
    api.hear(7, timestamp=1_763_688_600)
    ZoneInfo.clear_cache()
    reset_tzpath(())  # as on a machine without any
    try:
        text = api.client.get(f"/api/v1/staff/7/detections?format=csv&zone={zone}").text
    finally:
        reset_tzpath()
    [row] = csv.DictReader(io.StringIO(text))
    assert row["local_time"].endswith(local)


@pytest.mark.parametrize("kind", ["csv", "geojson"])
def test_a_download_that_fails_before_its_first_piece_is_a_503(
    api: Api, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(history, "READ_AT_ONCE", 4)
    for number in range(10):
        api.hear(1, event_id=f"e{number}")
    page = Detections.page

    def broken(self: Detections, wanted: Any, after: Any, limit: int, as_of: Any) -> Any:
        if after is not None:
            raise StoreUnavailable("away")
        return page(self, wanted, after, limit, as_of)

    monkeypatch.setattr(Detections, "page", broken)
    answer = api.client.get(f"/api/v1/staff/1/detections?format={kind}")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert "Content-Disposition" not in answer.headers


def test_downloads_tell_of_their_next_page(api: Api) -> None:
    for number in range(3):
        api.hear(1, event_id=f"e{number}")
    answer = api.client.get("/api/v1/staff/1/detections?format=csv&limit=2")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["location"] for row in rows] == ["Lobby B", "Lobby B"]
    assert answer.headers["X-Truncated"] == "true"
    path = answer.headers["Link"].removeprefix("<").removesuffix('>; rel="next"')
    last = api.client.get(path)
    assert len(list(csv.DictReader(io.StringIO(last.text)))) == 1
    assert "Link" not in last.headers


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/staff/99/detections", 404, None),
        ("/staff/a%20b/detections", 400, "staff_id"),
        ("/staff/1/detections?from=tomorrow", 400, "from"),
        ("/staff/1/detections?from=2023-11-14T22:13:30", 400, "from"),
        ("/staff/1/detections?to=2023-02-30T22:13:30Z", 400, "to"),
        ("/staff/1/detections?from=2&to=1", 400, "from"),
        ("/staff/1/detections?limit=0", 400, "limit"),
        ("/staff/1/detections?limit=3001", 400, "limit"),
        ("/staff/1/detections?cursor=1-z", 400, "cursor"),
        ("/staff/1/detections?format=xml", 400, "format"),
    ],
)
def test_bad_requests_are_problems(api: Api, path: str, status: int, field: str | None) -> None:
    api.hear(1)
    answer = api.client.get(f"/api/v1{path}", headers={"X-Request-ID": "me"})
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert answer.json is not None
    assert answer.json["request_id"] == "me"
    assert [error["field"] for error in answer.json["errors"]] == ([field] if field else [])


def test_addresses_that_are_not_there(api: Api) -> None:
    client = api.client
    client.__class__ = client.__class__.__mro__[1]  # these are declared nowhere
    for method, path, code in [
        ("GET", "/api/v1", "not_found"),
        ("GET", "/api/v1/nothing", "not_found"),
        ("POST", "/api/v1/staff", "method_not_allowed"),
    ]:
        answer = client.open(path, method=method)
        assert answer.json is not None
        assert answer.json["code"] == code
    assert "GET" in answer.headers["Allow"]
    assert client.get("/nothing").json == {"error": "not found"}


@pytest.mark.parametrize("staff_id", [2**31, 2**53 - 1, *map(str, (2**53 + 1, 2**63 - 1, 10**19))])
def test_a_large_staff_id_is_the_same_everywhere(api: Api, staff_id: int | str) -> None:
    cursor = api.client.get("/api/v1/changes").get_data(as_text=True).split('"')[3]
    api.hear(staff_id)
    api.hear(staff_id, "AAAAAAAAAAAA")
    assert [row["staff_id"] for row in api.get("/staff")["data"]] == [staff_id]
    assert api.get("/now")["levels"]
    assert len(api.get(f"/staff/{staff_id}/detections")["data"]) == 2
    assert staff_id in [row["staff_id"] for row in api.get("/coverage")["data"]]
    assert [beacon["staff"] for beacon in api.get("/beacons/unknown")["data"]] == [[staff_id]]
    answer = api.client.get(f"/api/v1/changes?wait=5&after={cursor}")
    assert answer.status_code == 200
    assert f'"staff_id":{json.dumps(staff_id)},' in answer.get_data(as_text=True)
    assert api.client.get("/retrieveformonitoring").status_code == 200
