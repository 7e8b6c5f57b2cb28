"""Beacons without a MAC for a phone: heard, registered, imported, told and exported by their id."""

import csv
import io
from typing import Any
from urllib.parse import quote

import pytest

from common import beacon_id
from tests.services.ingest.api.conftest import MAC, Api

UUID = "e2c56db5-dffb-48d2-b060-d0f5a71096e0"
IBEACON = f"ibeacon:{UUID}:1:4660"
IDS = [
    IBEACON,
    f"altbeacon:{UUID}:1:4660",
    "eddystone-uid:00112233445566778899:aabbccddeeff",
    "eddystone-url:036578616d706c6507",
]
LOBBY = {"level": "2", "location": "Lobby A"}


def send(api: Api, mac: Any, **more: Any) -> Any:
    item = {"staff_id": 7, "mac": mac, "rssi": -60} | more
    answer = api.client.post("/api/v1/detections", json={"detections": [item]})
    assert answer.json is not None
    return answer.json["results"][0]


@pytest.mark.parametrize("identified", IDS)
def test_a_beacon_of_any_kind_is_registered_heard_and_told(api: Api, identified: str) -> None:
    address = f"/api/v1/beacons/{quote(identified, safe='')}"
    assert api.client.put(address, json=LOBBY).status_code == 200
    result = send(api, identified)
    assert (result["mac"], result["known"], result["location"]) == (identified, True, "Lobby A")
    api.hear(7, identified.upper() if identified == IBEACON else identified)
    [person] = api.get("/staff")["data"]
    assert (person["mac"], person["location"]) == (identified, "Lobby A")
    rows = api.get("/staff/7/detections")["data"]
    assert [row["mac"] for row in rows] == [identified] * 2
    legacy = api.client.get("/extractbeacon?staff_id=7&start_time=0&end_time=4102444800").json
    assert legacy is not None
    assert [row["location"] for row in legacy["location"]] == ["Lobby A"] * 2
    exported = api.client.get("/api/v1/staff/7/detections?format=csv").text.lstrip("\ufeff")
    assert [row["mac"] for row in csv.DictReader(io.StringIO(exported))] == [identified] * 2
    visited = {place["location"]: place["macs"] for place in api.get("/coverage")["data"]}
    assert visited["Lobby A"] == [identified]
    assert api.client.delete(address).status_code == 204


def test_the_fields_of_a_decoder_are_the_same_beacon(api: Api) -> None:
    fields = {"uuid": UUID.upper(), "major": 1, "minor": "4660"}
    assert send(api, fields)["mac"] == IBEACON
    assert send(api, fields | {"kind": "altbeacon"})["mac"] == f"altbeacon:{UUID}:1:4660"
    body = {"user_address": 7, "beacon_address": fields, "rssi": -60}
    assert api.client.post("/newbeacondetect", json=body).status_code == 200


def test_a_repeat_in_another_spelling_is_the_same_detection(api: Api) -> None:
    named = {"event_id": "5d9e7a52", "timestamp": 1600000000}
    assert send(api, IBEACON, **named)["status"] == "stored"
    for spelling in (f"{UUID}_1_4660", {"uuid": UUID, "major": 1, "minor": 4660}):
        assert send(api, spelling, **named)["status"] == "duplicate"
    assert len(api.get("/staff/7/detections")["data"]) == 1


@pytest.mark.parametrize(
    ("mac", "reason"),
    [
        (UUID, beacon_id.WHOLE_FLEET),
        ({"uuid": UUID}, beacon_id.WHOLE_FLEET),
        (f"irk:{UUID.replace('-', '')}", beacon_id.KEY),
        ("x", beacon_id.NOT_AN_ID),
        ({}, beacon_id.NO_FIELDS),
    ],
)
def test_what_names_no_beacon_says_why(api: Api, mac: Any, reason: str) -> None:
    result = send(api, mac)
    assert result["status"] == "rejected"
    assert {"field": "mac", "reason": reason} in result["errors"]
    if isinstance(mac, str):
        body = {"user_address": 7, "beacon_address": mac, "rssi": -60}
        answer = api.client.post("/newbeacondetect", json=body)
        assert (answer.status_code, reason in answer.text) == (400, True)
        assert mac == "x" or mac not in answer.text  # a key is not repeated


def test_a_key_in_a_file_is_not_repeated(api: Api) -> None:
    for written in ("irk:KEY", "known:irk:KEY", "IRK KEY", "KEY"):
        text = f"mac,level,location\n{written.replace('KEY', 'ab' * 16)},4,Lobby\n"
        answer = api.client.post("/api/v1/beacons/import", data=text, content_type="text/csv")
        assert answer.status_code == 400
        assert "abab" not in answer.text


def test_ids_that_rotate_are_no_unknown_beacons(api: Api) -> None:
    for number in range(300):
        assert send(api, f"eddystone-eid:{number:016x}")["status"] == "stored"
    api.hear(7, IBEACON)
    answer = api.get("/beacons/unknown")
    assert [row["mac"] for row in answer["data"]] == [IBEACON]
    assert not answer["truncated"]


def test_a_file_of_beacons_of_all_kinds_comes_back_as_it_went_in(api: Api) -> None:
    lines = [f"{identified},4,Spot {number},," for number, identified in enumerate(IDS)]
    text = "\n".join(["mac,level,location,x,y", *lines, ""])
    done = api.client.post("/api/v1/beacons/import", data=text, content_type="text/csv").json
    assert done is not None
    assert done["added"] == len(IDS)
    written = api.client.get("/api/v1/beacons?format=csv").text
    assert {*IDS, MAC} == {row[0] for row in list(csv.reader(io.StringIO(written)))[1:]}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (
            {"raw": f"02011a1aff4c000215{UUID.replace('-', '')}00011234c5"},
            (IBEACON, {"power_dbm": -59}),
        ),
        (
            {"raw": f"02011a1aff4c000215{UUID.replace('-', '')}00011234c5", "mac": MAC},
            (IBEACON, {"power_dbm": -59}),
        ),
        (
            {
                "raw": "0201060303e1ff1016e1ffa10864084b3828a6c2504c5553",
                "mac": "C2A628384B09",
            },
            ("C2A628384B09", {"battery_percent": 100}),
        ),
        (
            {"raw": "0201060303aafe1116aafe20000bb8ff800000006400000384", "mac": MAC},
            (
                MAC,
                {"battery_mv": 3000, "temperature_c": -0.5, "sequence": 100, "uptime_s": 90},
            ),
        ),
        ({"raw": "", "mac": MAC}, (MAC, None)),
        ({"raw": None, "mac": MAC}, (MAC, None)),
    ],
)
def test_an_advertisement_names_its_beacon(api: Api, sent: Any, told: Any) -> None:
    item = {"staff_id": 7, "rssi": -60} | sent
    answer = api.client.post("/api/v1/detections", json=item)
    assert answer.json is not None
    [result] = answer.json["results"]
    assert (result["mac"], result.get("telemetry")) == told
    assert "ignored" not in result


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("02011a1aff4c00", "must be whole: byte 3 announces 26 more"),
        ("xx", "must be hexadecimal digits, two for each byte"),
        ("02011a", "names no beacon: send the sender's address as `mac`, too"),
        (7, "must be text"),
    ],
)
def test_an_advertisement_that_names_none_says_why(api: Api, raw: object, reason: str) -> None:
    item = {"staff_id": 7, "rssi": -60, "raw": raw}
    for body in (item, {"detections": [item]}):
        answer = api.client.post("/api/v1/detections", json=body)
        assert reason in answer.text
        assert answer.status_code == (400 if body is item else 200)


def test_all_that_is_wrong_is_told_beside_a_bad_advertisement(api: Api) -> None:
    item = {"staff_id": "?", "rssi": 99, "raw": "xx", "more": 1}
    [result] = api.client.post("/api/v1/detections", json={"detections": [item]}).json["results"]  # type: ignore[index]
    assert [error["field"] for error in result["errors"]] == ["raw", "staff_id", "rssi", "more"]
    item = {
        "staff_id": 7,
        "rssi": -60,
        "mac": "?",
        "raw": f"1aff4c000215{UUID.replace('-', '')}00010001c5",
    }
    [result] = api.client.post("/api/v1/detections", json={"detections": [item]}).json["results"]  # type: ignore[index]
    assert [error["field"] for error in result["errors"]] == ["mac"]
