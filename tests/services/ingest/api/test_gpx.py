"""A history as GPX, for maps."""

import random
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from bson import ObjectId
from pymongo.database import Database

from ingest.histories import oldest_first
from ingest.rules.plan_origin import PlanOrigin
from ingest.web import long_answers
from tests.services.ingest.api.conftest import MAC, Api

START = 1_795_224_600  # 2026-11-21T01:30:00Z
ORIGIN = PlanOrigin(1.377, 103.8489)
OTHER, NOWHERE = "C2A628384B09", "C2A628384B10"
AT = "{http://www.topografix.com/GPX/1/1}"


@pytest.fixture
def api(api: Api) -> Api:
    """Return the API where it is known where the plans lie, with three beacons."""
    api.context = api.context._replace(plan_origin=ORIGIN)
    api.client.application.extensions["context"] = api.context
    for mac, place in {
        MAC: {"level": "4", "location": "Lobby B", "x": 10, "y": 20},
        OTHER: {"level": "B2", "location": "Bar & <Grill> 100%s", "x": 0, "y": 0},
        NOWHERE: {"level": "4", "location": "Stairs"},
    }.items():
        assert api.client.put(f"/api/v1/beacons/{mac}", json=place).status_code in (200, 201)
    return api


def hear(api: Api, mac: str, *seconds: int) -> None:
    for second in seconds:
        api.hear(7, mac, timestamp=START + second, event_id=f"{mac}-{second}")


def track(api: Api, query: str = "") -> tuple[str, str, list[list[Xml.Element]]]:
    """Return the name of the track, the last line but one, and the points of each segment.

    All elements are those of the schema of GPX 1.1, in its order.
    """
    answer = api.client.get(f"/api/v1/staff/7/detections?format=gpx&{query}")
    assert (answer.status_code, answer.mimetype) == (200, "application/gpx+xml"), answer.text
    root = Xml.fromstring(answer.text)  # our own
    assert (root.tag, root.get("version"), bool(root.get("creator"))) == (f"{AT}gpx", "1.1", True)
    assert [child.tag for child in root] == [f"{AT}metadata", f"{AT}trk"]
    name, *segments = root[1]
    assert name.tag == f"{AT}name"
    for segment in segments:
        assert segment.tag == f"{AT}trkseg"
        for number, point in enumerate(segment):
            assert point.tag == f"{AT}trkpt"
            assert point.keys() == ["lat", "lon"]
            fields = ["time"] if number else ["time", "name", "desc"]
            assert [field.tag for field in point] == [f"{AT}{field}" for field in fields]
    return name.text or "", answer.text.splitlines()[-2], [list(segment) for segment in segments]


def test_each_stay_is_a_segment_in_the_order_of_time(api: Api) -> None:
    hear(api, MAC, 0, 4, 304, 605, 700)
    hear(api, OTHER, 310)
    hear(api, NOWHERE, 702)
    hear(api, MAC, 704)
    name, left_out, segments = track(api)
    assert (name, left_out) == (
        "Staff 7",
        "<!-- without a position, and so not here: 1 detections -->",
    )
    times = [[point[0].text for point in segment] for segment in segments]
    assert times == [
        ["2026-11-21T01:30:00Z", "2026-11-21T01:30:04Z", "2026-11-21T01:35:04Z"],
        ["2026-11-21T01:35:10Z"],
        ["2026-11-21T01:40:05Z", "2026-11-21T01:41:40Z"],
        ["2026-11-21T01:41:44Z"],
    ]
    places = [(segment[0][1].text, segment[0][2].text) for segment in segments]
    assert places[:2] == [("Lobby B", "level 4"), ("Bar & <Grill> 100%s", "level B2")]
    first, other = segments[0][1], segments[1][0]
    assert (other.get("lat"), other.get("lon")) == ("1.3770000", "103.8489000")
    lat, lon = ORIGIN.degrees((10, 20))
    assert (first.get("lat"), first.get("lon")) == (f"{lat:.7f}", f"{lon:.7f}")
    assert lat < ORIGIN.latitude
    assert lon > ORIGIN.longitude


def test_five_minutes_of_silence_end_no_stay_and_more_do(api: Api) -> None:
    hear(api, MAC, 0, 300, 601)
    assert [len(segment) for segment in track(api)[2]] == [2, 1]
    page = "limit=1&cursor=1-0123456789abcdef01234567"  # of what has the newest first
    assert [len(segment) for segment in track(api, page)[2]] == [2, 1]


def test_it_is_called_as_the_person_is(api: Api) -> None:
    hear(api, MAC, 0)
    person = {"name": "Ann Lee", "team": "R&D"}
    assert api.client.put("/api/v1/people/7", json=person).status_code in (200, 201)
    assert track(api, "names=1")[0] == "Ann Lee, R&D"
    answer = api.client.get(
        "/api/v1/staff/7/detections?format=gpx&from=2026-11-21T01:00:00Z&to=2026-11-21T02:00:00Z"
    )
    name = "staff-7_2026-11-21_0100-0200.gpx"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert api.client.get(answer.request.full_path, headers=tag).status_code == 304


def test_nobody_without_detections_in_the_range_is_an_empty_track(api: Api) -> None:
    hear(api, MAC, 0)
    assert track(api, f"to={START - 1}")[2] == [[]]
    answer = api.client.get("/api/v1/staff/99/detections?format=gpx")
    assert answer.status_code == 404


def test_it_needs_to_know_where_the_plans_lie(api: Api) -> None:
    hear(api, MAC, 0)
    context = api.context._replace(plan_origin=None)
    api.client.application.extensions["context"] = context
    answer = api.client.get("/api/v1/staff/7/detections?format=gpx")
    assert (answer.status_code, "set PLAN_ORIGIN" in answer.text) == (400, True)


def test_whatever_an_older_database_has_is_xml(
    api: Api, database: Database[dict[str, Any]]
) -> None:
    name = "]]>\x00\x1f\ud7ff\uffff\r\n& café \U0001f600"
    row = {"_id": ObjectId(), "staff_id": 7, "timestamp": START, "mac": MAC, "received_at": None}
    database["staff"].insert_one(row | {"level": "4", "location": name})
    beacon = {"_id": "A" * 12, "mac": "A" * 12, "level": "4", "location": name}
    database["beacons"].insert_one(beacon | {"position": {"x": 1, "y": 2}})
    api.context.directory.cache._check_at = 0
    api.context.directory.cache._read_at = -1e9
    [[point]] = track(api)[2]
    assert point[1].text == "]]>\ufffd\ufffd\ud7ff\ufffd\r\n& café \U0001f600"


def test_a_long_one_has_each_detection_once_whatever_a_piece_holds(
    api: Api, database: Database[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oldest_first, "PIECE", 16)
    steps = random.Random(1)
    seconds = [0, *(steps.randrange(3_000_000) for _ in range(1000)), *range(5000, 5500)]
    seconds += [7000] * 50  # the clock of a phone that stands still
    row = {"staff_id": 7, "level": "4", "location": "Lobby B", "mac": MAC, "received_at": None}
    database["staff"].insert_many(row | {"timestamp": START + second} for second in seconds)
    lines = [point for segment in track(api)[2] for point in segment]
    assert len(lines) == len(seconds)
    times = [point[0].text for point in lines]
    assert times == sorted(times, key=str)
    for _ in range(2):
        assert long_answers._places.acquire(blocking=False)
    try:
        answer = api.client.get("/api/v1/staff/7/detections?format=gpx")
        assert (answer.status_code, answer.get_json()["code"]) == (429, "too_many_waiting")
        assert len(track(api, f"to={START + 100}")[2]) == 1  # a short one needs no place
    finally:
        for _ in range(2):
            long_answers._places.release()
