"""Scans: all that a phone heard in one moment, as one item."""

import time
from typing import Any

import pytest
from pymongo.database import Database

from common.beacon_id import IBEACON
from ingest.api.detections.detection_input import MAX_HEARD, MAX_ITEMS
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.recording.recorder import Recorder
from tests.services.ingest.api.conftest import MAC, Api
from tests.services.ingest.api.test_detections import post, results

OTHER, STRANGER = "A0B1C2D3E4F5", "C0FFEE000001"
PHONE_ID = f"{IBEACON}:ca271eae-5fa8-4e80-8f08-2a302a95a959:1:7"


def heard(beacon: object, rssi: object, **more: Any) -> dict[str, Any]:
    return {"beacon": beacon, "rssi": rssi, **more}


def scan(*beacons: object, **more: Any) -> dict[str, Any]:
    return {"staff_id": 1, "event_id": "s1", "heard": list(beacons), **more}


def stored(database: Database[Any]) -> dict[str, int | None]:
    return {row["mac"]: row["rssi"] for row in database["staff"].find()}


def test_each_beacon_of_a_scan_is_a_detection_of_its_moment(
    api: Api, database: Database[Any]
) -> None:
    timestamp = int(time.time()) - 5
    body = scan(heard(MAC, -80), heard(PHONE_ID, -60), heard(STRANGER, None), timestamp=timestamp)
    (result,) = results(post(api, body))
    assert result["status"] == "stored"
    assert result["heard"] == [
        {"beacon": MAC, "level": "4", "location": "Lobby B", "known": True},
        {"beacon": PHONE_ID, "level": "unknown", "location": "unknown", "known": False},
        {"beacon": STRANGER, "level": "unknown", "location": "unknown", "known": False},
    ]
    assert stored(database) == {MAC: -80, PHONE_ID: -60, STRANGER: None}
    assert {row["timestamp"] for row in database["staff"].find()} == {timestamp}
    history = api.client.get("/api/v1/staff/1/detections").json
    assert history is not None
    assert {row["mac"] for row in history["data"]} == {MAC, PHONE_ID, STRANGER}
    (again,) = results(post(api, body))
    assert again["status"] == "duplicate"
    assert len(stored(database)) == 3


def test_where_somebody_is_comes_from_the_whole_scan(api: Api) -> None:
    api.client.put(f"/api/v1/beacons/{OTHER}", json={"level": "5", "location": "Library"})
    body = scan(heard(MAC, -80), heard(STRANGER, -30), heard(OTHER, -55))
    results(post(api, body))
    people = api.client.get("/api/v1/staff").json
    assert people is not None
    assert people["data"][0]["location"] == "Library"


def test_a_repeat_that_heard_more_adds_what_is_new(api: Api, database: Database[Any]) -> None:
    now = int(time.time())
    results(post(api, scan(heard(MAC, -70), timestamp=now)))
    (result,) = results(post(api, scan(heard(MAC, -70), heard(OTHER, -71), timestamp=now)))
    assert result["status"] == "stored"
    assert stored(database) == {MAC: -70, OTHER: -71}


def test_a_beacon_that_stands_twice_is_as_strong_as_the_stronger(
    api: Api, database: Database[Any]
) -> None:
    post(api, scan(heard(MAC, None), heard(MAC.lower(), -70), heard(MAC, -60), heard(MAC, -65)))
    assert stored(database) == {MAC: -60}


def test_what_an_advertisement_names_is_heard(api: Api, database: Database[Any]) -> None:
    raw = "0201061aff4c000215ca271eae5fa84e808f082a302a95a95900010007c5"
    (result,) = results(post(api, scan({"rssi": -60, "raw": raw}, heard(MAC, -61, raw="0201061"))))
    assert stored(database) == {PHONE_ID: -60}
    assert result["heard"][0]["telemetry"] == {"power_dbm": -59}
    assert [error["field"] for error in result["errors"]] == ["heard[1].raw"]


def test_a_bad_beacon_is_named_and_takes_no_other_with_it(
    api: Api, database: Database[Any]
) -> None:
    """A phone hears what no app knows; the whole moment is not lost for it."""
    body = scan(heard(MAC, -60, colour=1), heard("nonsense", -60), 7, heard(OTHER, "loud"), hat=1)
    (result,) = results(post(api, body))
    assert result["status"] == "stored"
    assert stored(database) == {MAC: -60}
    fields = [error["field"] for error in result["errors"]]
    assert fields == ["heard[1].beacon", "heard[2]", "heard[3].rssi"]
    assert result["ignored"] == ["hat", "heard[0].colour"]


def test_what_is_null_is_not_there(api: Api, database: Database[Any]) -> None:
    """Some libraries write each field that a class has."""
    for body in (
        {"staff_id": 1, "mac": MAC, "rssi": -60, "heard": None},
        {"staff_id": 1, "mac": None, "rssi": None, "raw": "", "heard": [heard(OTHER, -61)]},
    ):
        (result,) = results(post(api, body))
        assert (result["status"], result.get("ignored")) == ("stored", None)
    assert stored(database) == {MAC: -60, OTHER: -61}


def test_a_slip_in_the_name_is_told(api: Api) -> None:
    answer = post(api, {"staff_id": 1, "Heard": [heard(MAC, -60)]}).json
    assert answer is not None
    reasons = {error["field"]: error["reason"] for error in answer["errors"]}
    assert reasons["Heard"] == "is not known here; did you mean heard?"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (scan(), "heard"),
        (scan() | {"heard": None}, "mac"),
        (scan() | {"heard": {"beacon": MAC, "rssi": -60}}, "heard"),
        (scan(heard("nonsense", -60)), "heard[0].beacon"),
        (scan({"rssi": -60}), "heard[0].beacon"),
        (scan({"beacon": MAC}), "heard[0].rssi"),
        (scan(heard(MAC, -60), mac=MAC), "mac"),
        (scan(heard(MAC, -60), rssi=-60), "rssi"),
        (scan(heard(MAC, -60), timestamp=1), "timestamp"),
        (scan(heard(MAC, -60)) | {"staff_id": ""}, "staff_id"),
        (scan(heard(MAC, -60), event_id="a" * 129), "event_id"),
    ],
)
def test_what_is_wrong_with_all_of_a_scan(
    api: Api, database: Database[Any], body: dict[str, Any], field: str
) -> None:
    answer = post(api, body)
    assert answer.status_code == 400
    assert answer.json is not None
    assert field in [error["field"] for error in answer.json["errors"]]
    (result, _) = results(post(api, {"detections": [body, scan(heard(OTHER, -60))]}))
    assert result["status"] == "rejected"
    assert field in [error["field"] for error in result["errors"]]
    assert stored(database) == {OTHER: -60}


def test_a_slip_of_detections_is_told(api: Api) -> None:
    answer = post(api, scan({"mac": MAC, "rssi": -60}))
    assert "heard[0].beacon: is missing: in a scan it is not called mac" in answer.text


def test_a_scan_and_a_request_have_bounds(api: Api) -> None:
    beacons = [heard(f"C0FFEE{number:06X}", -60) for number in range(1, MAX_HEARD + 1)]
    (result,) = results(post(api, scan(*beacons)))
    assert len(result["heard"]) == MAX_HEARD
    answer = post(api, scan(*beacons, heard(MAC, -60)))
    assert answer.status_code == 400
    assert "heard: must have at most 250 beacons, not 251" in answer.text
    whole = [scan(*beacons)] * (MAX_ITEMS // MAX_HEARD)
    assert post(api, {"detections": whole}).status_code == 200
    assert post(api, {"detections": [*whole, scan(heard(MAC, -60))]}).status_code == 413


def test_a_scan_stands_beside_detections_and_says_when_it_was_sent(
    api: Api, database: Database[Any]
) -> None:
    sent_at = int(time.time()) - 7200
    items = [
        scan(heard(MAC, -60), heard(OTHER, -61), timestamp=sent_at - 60),
        {"staff_id": 2, "mac": MAC, "rssi": -60, "timestamp": sent_at - 60},
    ]
    answer = post(api, {"detections": items, "sent_at": sent_at})
    assert [result["index"] for result in results(answer)] == [0, 1]
    assert answer.json is not None
    assert answer.json["counts"]["stored"] == 2
    assert answer.json["clock"] == "behind"
    assert all("heard" in row for row in database["staff"].find())  # when, by our clock


def test_without_an_event_id_the_gateways_retry_stores_nothing_twice(
    api: Api, database: Database[Any]
) -> None:
    body = {"staff_id": 1, "heard": [heard(MAC, -60), heard(OTHER, -61)]}
    headers = {"X-Request-ID": "r1", "X-Request-Start": f"{time.time():.3f}"}
    assert results(post(api, body, headers=headers))[0]["status"] == "stored"
    assert results(post(api, body, headers=headers))[0]["status"] == "duplicate"
    assert len(stored(database)) == 2


def test_of_a_scan_that_was_stored_in_part_nothing_is_promised(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store(*_: object) -> list[Outcome]:
        raise PartlyStored([Outcome.STORED, Outcome.UNAVAILABLE, Outcome.STORED])

    monkeypatch.setattr(Recorder, "record", store)
    items = [scan(heard(MAC, -60), heard(OTHER, -61)), {"staff_id": 2, "mac": MAC, "rssi": -60}]
    answer = post(api, {"detections": items})
    statuses = [result["status"] for result in results(answer, 503)]
    assert statuses == ["unavailable", "stored"]


def test_a_dry_run_of_a_scan_stores_nothing(api: Api, database: Database[Any]) -> None:
    (result,) = results(post(api, scan(heard(MAC, -60)), "?dry_run=1"))
    assert result["status"] == "would store"
    assert not stored(database)
