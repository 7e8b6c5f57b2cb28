"""A strength that is not known: stored in every form in which it comes, told as none."""

from typing import Any

import pytest
from pymongo.database import Database

from tests.services.ingest.api.conftest import MAC, Api

LEGACY = {"user_address": 1, "beacon_address": MAC}
ITEM = {"staff_id": 1, "mac": MAC}
WAYS: dict[str, list[dict[str, Any]]] = {
    "/newbeacondetect": [
        *[{"query_string": LEGACY | {"rssi": none}} for none in ("", "0", "127", "NaN")],
        *[{"data": LEGACY | {"rssi": none}} for none in ("", "0", "127", "null")],
        *[{"json": LEGACY | {"rssi": none}} for none in ("", 0, 127, None, 0.0)],
        {"json": LEGACY | {"rssi": None}, "query_string": {"rssi": ""}},
    ],
    "/api/v1/detections": [
        *[{"json": ITEM | {"rssi": none}} for none in ("", 0, 127, None, 0.0, "nan")],
        *[{"json": {"detections": [ITEM | {"rssi": none}]}} for none in ("", 0, 127, None)],
    ],
}


@pytest.mark.parametrize("path", WAYS)
def test_it_is_stored_and_told_as_none(api: Api, database: Database[Any], path: str) -> None:
    for way in WAYS[path]:
        answer = api.client.post(path, **way)
        assert answer.status_code == 200, (way, answer.text)
        if answer.is_json:
            assert answer.get_json()["counts"]["stored"] == 1
    assert [row["rssi"] for row in database["staff"].find()] == [None] * len(WAYS[path])
    detections = api.get("/staff/1/detections")["data"]
    assert [detection["rssi"] for detection in detections] == [None] * len(WAYS[path])
    assert [row["rssi"] for row in api.get("/staff")["data"]] == [None]
    old = api.client.get("/retrieveformonitoring").get_json()["location"]
    assert [row["rssi"] for row in old] == [-127] * len(WAYS[path])  # old readers want a number
    rows = api.client.get("/api/v1/staff/1/detections?format=csv").text.splitlines()[1:]
    assert all(f",{MAC},,1" in row for row in rows)


def test_what_the_query_has_wins_unless_it_is_empty(api: Api, database: Database[Any]) -> None:
    for rssi, stored in (("-50", -50), ("", -60)):
        api.client.post(
            "/newbeacondetect", query_string={"rssi": rssi}, json=LEGACY | {"rssi": -60}
        )
        assert database["staff"].find_one_and_delete({})["rssi"] == stored  # type: ignore[index]


def test_it_moves_nobody(api: Api) -> None:
    api.client.put("/api/v1/beacons/AABBCCDDEEFF", json={"level": "5", "location": "Roof"})
    for ago in range(9, 1, -1):
        api.hear(1, ago=ago, rssi=-55)
    api.hear(1, "AABBCCDDEEFF", ago=1, rssi=0)
    assert [row["level"] for row in api.get("/staff")["data"]] == ["4"]


def test_an_address_that_stands_for_none_is_no_beacon(api: Api, database: Database[Any]) -> None:
    for none in ("ff:ff:ff:ff:ff:ff", "000000000000"):
        answers = [
            api.client.post("/newbeacondetect", json=LEGACY | {"beacon_address": none, "rssi": 1}),
            api.client.post("/api/v1/detections", json=ITEM | {"mac": none, "rssi": 1}),
            api.client.put(f"/api/v1/beacons/{none}", json={"level": "5", "location": "Roof"}),
        ]
        for answer in answers:
            assert answer.status_code == 400
            assert "stands for none" in answer.text
        assert api.client.delete(f"/api/v1/beacons/{none}").status_code == 204
    assert database["staff"].count_documents({}) == 0
