"""What beacons tell of themselves is kept: by two services, once, within bounds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pymongo.database import Database

from common.beacon import Beacon
from ingest import create_app
from ingest.config import Config
from ingest.rules.batteries import DAY_SECONDS, SERIES_DAYS
from ingest.storage.directory import telemetry
from ingest.storage.directory.telemetry import MAX_READINGS, Telemetry
from scripts.processes.waiting import eventually
from tests.services.ingest.api.conftest import MAC, Api

OTHER = "AABBCCDDEEFF"
SAID = {"battery_mv", "temperature_c", "sequence", "uptime_s"}


def tlm(millivolts: int, temperature: int = 20, sequence: int = 100) -> str:
    """Return the telemetry frame of an Eddystone beacon."""
    fields = f"{millivolts:04x}{temperature:02x}00{sequence:08x}00000384"
    return f"0201060303aafe1116aafe2000{fields}"


NO_BATTERY, PERCENT_97 = tlm(0), "0201060c16d2fc40016102ca0903bf13"


def say(api: Api, raw: str, mac: str = MAC, *, ago: int = 0, query: str = "") -> None:
    item = {"staff_id": 7, "rssi": -60, "mac": mac, "raw": raw}
    item["timestamp"] = int(time.time()) - ago
    answer = api.client.post(f"/api/v1/detections{query}", json={"detections": [item]})
    assert answer.status_code == 200, answer.text
    assert "errors" not in answer.text or answer.json["results"][0]["errors"] == []  # type: ignore[index]


def written(api: Api) -> list[dict[str, Any]]:
    api.context.directory.telemetry.write()
    rows: list[dict[str, Any]] = api.get("/beacons/batteries")["data"]
    return rows


@contextmanager
def service(mongod: str, folder: Path) -> Iterator[Api]:
    """Run one more service."""
    spool = str(folder / "another.db")
    api = Api(create_app(Config(mongodb_uri=mongod, mongodb_timeout_ms=5000, spool_file=spool)))
    yield api
    api.context.close()


def test_the_newest_of_each_reading_is_told_with_its_time(api: Api) -> None:
    say(api, tlm(2990, 21), ago=60)
    say(api, NO_BATTERY)
    [row] = written(api)
    assert (row["mac"], row["level"], row["location"]) == (MAC, "4", "Lobby B")
    assert row["readings"].keys() == SAID
    readings = row["readings"]
    assert [readings[name]["value"] for name in ("battery_mv", "temperature_c")] == [2990, 20]
    assert readings["temperature_c"]["at"] - readings["battery_mv"]["at"] in (59, 60, 61)
    battery = row["battery"]
    assert (battery["value"], battery["unit"], battery["left"]) == (2990, "mV", 0.98)
    assert battery["at"] == readings["battery_mv"]["at"]
    assert (battery["per_day"], battery["empty_at"], battery["low"]) == (None, None, False)
    say(api, PERCENT_97)
    [row] = written(api)
    assert (row["battery"]["value"], row["battery"]["unit"]) == (97, "%")


def test_a_backlog_stands_on_its_own_days_and_never_replaces_what_is_newer(api: Api) -> None:
    for day in (0, *range(30, 0, -1)):
        say(api, tlm(2800 + 4 * day, day), ago=day * DAY_SECONDS)
    [row] = written(api)
    assert row["readings"]["battery_mv"]["value"] == 2800
    assert row["readings"]["temperature_c"]["value"] == 0
    battery = row["battery"]
    assert battery["per_day"] == pytest.approx(-4, abs=0.01)
    assert battery["empty_at"] == pytest.approx(time.time() + 75 * DAY_SECONDS, abs=DAY_SECONDS)


def test_a_day_has_one_reading_and_there_are_so_many_days(
    api: Api, database: Database[Any]
) -> None:
    noon = int(time.time()) // DAY_SECONDS * DAY_SECONDS - DAY_SECONDS // 2
    told = api.context.directory.telemetry
    for day in range(2 * SERIES_DAYS):
        for hour in (1, 3, 2):
            told.note(MAC, noon - day * DAY_SECONDS + hour * 3600, {"battery_mv": 2000 + hour})
    told.write()
    document = database["telemetry"].find_one(MAC)
    assert document is not None
    days = sorted(document["days"]["battery_mv"].values(), key=lambda reading: reading["at"])
    assert len(days) == SERIES_DAYS
    assert {reading["value"] for reading in days} == {2003}
    assert days[0]["at"] == noon + 3 * 3600 - (SERIES_DAYS - 1) * DAY_SECONDS


def test_two_services_lose_no_reading_and_double_none(
    api: Api, mongod: str, tmp_path: Path, database: Database[Any]
) -> None:
    with service(mongod, tmp_path) as another:
        for day in range(40):
            say((api, another)[day % 2], tlm(3000 - day, day), ago=(39 - day) * DAY_SECONDS)
            say((another, api)[day % 2], tlm(3000 - day, day), ago=(39 - day) * DAY_SECONDS + 60)
        both = [each.context.directory.telemetry.write for each in (api, another)]
        threads = [threading.Thread(target=write) for write in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [row] = written(api)
        assert row["battery"]["per_day"] == pytest.approx(-1, abs=0.01)
        assert (row["battery"]["value"], row["readings"]["temperature_c"]["value"]) == (2961, 39)
        assert written(another) == [row]
    document = database["telemetry"].find_one()
    assert document is not None
    # Of a minute before there is one more day where it was the day before.
    assert len(document["days"]["battery_mv"]) in (40, 41)


def test_a_time_ahead_counts_as_ours(api: Api) -> None:
    say(api, tlm(2900), ago=-20 * 3600)
    [row] = written(api)
    assert row["battery"]["at"] <= time.time()


def test_nothing_is_kept_of_strangers_nor_of_a_dry_run(api: Api, database: Database[Any]) -> None:
    for number in range(50):
        say(api, tlm(2900), f"AABBCCDDEE{number:02X}")
    say(api, tlm(2900), query="?dry_run=1")
    say(api, "02011a", MAC)  # which tells nothing
    assert written(api) == []
    assert database["telemetry"].count_documents({}) == 0


def test_no_more_waits_than_is_allowed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    told = api.context.directory.telemetry
    monkeypatch.setattr(telemetry, "HURRY_SECONDS", 3600)
    monkeypatch.setattr(telemetry, "TIMEOUT_SECONDS", 60)  # 4096 beacons, none of the directory
    woken = Mock()
    monkeypatch.setattr(told._rounds, "wake", woken)
    for number in range(MAX_READINGS // 2):
        told.note(f"{number:012X}", 1_767_225_600, {"temperature_c": 20})
    assert not woken.called
    for number in range(MAX_READINGS + 100):
        told.note(f"{number:012X}", 1_767_225_601, {"temperature_c": 21})
    assert woken.called
    assert len(told._waiting) == MAX_READINGS
    assert {reading.value for reading in told._waiting.values()} == {21}  # known ones go on
    told.write()
    assert told._waiting == {}


def test_a_beacon_that_is_taken_out_takes_along_what_it_told(
    api: Api, mongod: str, tmp_path: Path, database: Database[Any]
) -> None:
    with service(mongod, tmp_path) as another:
        place = {"level": "4", "location": "Room"}
        api.client.put(f"/api/v1/beacons/{OTHER}", json=place)
        eventually(lambda: OTHER in another.context.directory_snapshot().by_id)
        for each in (api, another):
            say(each, tlm(2900), OTHER)
        say(api, tlm(2900))
        assert {row["mac"] for row in written(api)} == {MAC, OTHER}
        assert api.client.delete(f"/api/v1/beacons/{OTHER}").status_code == 204
        assert [row["mac"] for row in api.get("/beacons/batteries")["data"]] == [MAC]
        assert database["telemetry"].distinct("_id") == [MAC]
        another.context.directory.telemetry.write()  # what was noted before it was taken out
        assert database["telemetry"].distinct("_id") == [MAC]
    moved = {"level": "5", "location": "Roof"}
    api.client.put(f"/api/v1/beacons/{MAC}", json=moved)
    [row] = api.get("/beacons/batteries")["data"]
    assert (row["level"], row["location"]) == ("5", "Roof")  # one that is moved keeps it


def test_what_an_alias_told_is_told_of_its_beacon(api: Api, database: Database[Any]) -> None:
    place = {"level": "4", "location": "Room"}
    api.client.put(f"/api/v1/beacons/{OTHER}", json=place)
    say(api, tlm(2900, 21), OTHER, ago=2 * DAY_SECONDS)
    say(api, NO_BATTERY, OTHER, ago=20)
    say(api, tlm(2800, 25), ago=30)
    assert len(written(api)) == 2
    one = {"aliases": [OTHER]}
    for _ in range(2):
        answer = api.client.put(f"/api/v1/beacons/{MAC}?take=1", json=place | one)
        assert answer.status_code == 200
    [row] = written(api)
    assert row["mac"] == MAC
    assert (row["battery"]["value"], row["readings"]["temperature_c"]["value"]) == (2800, 20)
    [told] = database["telemetry"].find()
    assert sorted(day["value"] for day in told["days"]["battery_mv"].values()) == [2800, 2900]
    say(api, tlm(2700), OTHER)
    [row] = written(api)
    assert (row["mac"], row["battery"]["value"]) == (MAC, 2700)


def test_what_waits_of_an_id_that_becomes_an_alias_is_told_of_its_beacon(
    api: Api, database: Database[Any]
) -> None:
    api.client.put(f"/api/v1/beacons/{OTHER}", json={"level": "4", "location": "Room"})
    say(api, tlm(2900), OTHER, ago=2 * DAY_SECONDS)
    assert len(written(api)) == 1
    say(api, tlm(2800), OTHER)
    directory = api.context.directory
    # Of the other service: what is in the database then, and the reading that waits, are nobody's.
    directory.beacons.put([Beacon(MAC, "4", "Lobby B", aliases=(OTHER,))], takes_ids=True)
    directory.telemetry.write()
    directory.cache.reload()
    [row] = written(api)
    assert (row["mac"], row["battery"]["value"]) == (MAC, 2800)
    [told] = database["telemetry"].find()
    assert sorted(day["value"] for day in told["days"]["battery_mv"].values()) == [2800, 2900]


def test_what_finds_no_room_is_of_other_beacons_each_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [f"AABBCC{number:06X},4,Room" for number in range(40)]
    file = "\n".join(["mac,level,location", *places])
    answer = api.client.post("/api/v1/beacons/import", data=file, content_type="text/csv")
    assert answer.status_code == 200
    monkeypatch.setattr(telemetry, "MAX_READINGS", 100)  # of 200
    monkeypatch.setattr(api.context.directory.telemetry._rounds, "wake", Mock())
    raw = tlm(2900)
    items = [{"staff_id": 7, "rssi": -60, "mac": line[:12], "raw": raw} for line in places]

    def are_all_told() -> bool:
        assert api.client.post("/api/v1/detections", json={"detections": items}).status_code == 200
        return len(written(api)) == len(places)

    eventually(are_all_told)


def test_it_is_written_by_the_clock_and_at_a_stop(
    api: Api, mongod: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service(mongod, tmp_path) as another:
        say(another, tlm(2950), ago=9)
        assert api.get("/beacons/batteries")["data"] == []
    [row] = api.get("/beacons/batteries")["data"]
    assert row["battery"]["value"] == 2950
    monkeypatch.setattr(telemetry, "WRITE_SECONDS", 0.1)
    monkeypatch.setattr(telemetry, "HURRY_SECONDS", 0.0)
    for ago, value in (6, 2940), (3, 2930):
        say(api, tlm(value), ago=ago)
        eventually(
            lambda value=value: (  # type: ignore[misc]
                api.get("/beacons/batteries")["data"][0]["battery"]["value"] == value
            )
        )


def test_what_the_database_does_not_take_waits_on(
    api: Api, database: Database[Any], tmp_path: Path
) -> None:
    config = Config(
        mongodb_uri="mongodb://127.0.0.1:1", mongodb_timeout_ms=200, spool_file=str(tmp_path / "s")
    )
    away = create_app(config).extensions["context"]
    told: Telemetry = away.directory.telemetry
    told.note(MAC, 1_767_225_600, {"battery_mv": 2900})
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
        told.write()
    told.note(MAC, 1_767_225_601, {"battery_mv": 2901})
    assert {reading.value for reading in told._waiting.values()} == {2901}
    told._stored, told._beacons = database["telemetry"], api.context.directory.beacons
    away.close()
    [row] = api.get("/beacons/batteries")["data"]
    assert row["battery"]["value"] == 2901


def test_what_beacons_of_a_scan_tell_is_kept_of_each_frame(api: Api) -> None:
    ibeacon = f"02011a1aff4c000215{'ab' * 16}00010002c5"
    place = {"level": "4", "location": "Room"}
    api.client.put(f"/api/v1/beacons/{OTHER}", json=place)
    heard = [
        {"beacon": MAC, "rssi": -60, "raw": PERCENT_97},
        {"beacon": MAC, "rssi": -50, "raw": tlm(2900, 21)},
        {"beacon": MAC, "rssi": -55},
        {"beacon": OTHER, "rssi": -70, "raw": tlm(2800, 22)},
        {"rssi": -70, "raw": ibeacon},
    ]
    answer = api.client.post("/api/v1/detections", json={"staff_id": 7, "heard": heard})
    assert answer.json is not None
    assert [len(beacon.get("telemetry", {})) for beacon in answer.json["results"][0]["heard"]] == [
        6,
        4,
        1,
    ]
    rows = {row["mac"]: row["readings"] for row in written(api)}
    assert rows.keys() == {MAC, OTHER}
    values = {name: reading["value"] for name, reading in rows[MAC].items()}
    assert values | {"battery_percent": 97, "battery_mv": 2900, "temperature_c": 21} == values
    assert rows[OTHER]["battery_mv"]["value"] == 2800


def test_an_unchanged_answer_is_a_304(api: Api) -> None:
    say(api, tlm(2900), ago=9)
    written(api)
    answer = api.client.get("/api/v1/beacons/batteries")
    held = {"If-None-Match": answer.headers["ETag"]}
    assert api.client.get("/api/v1/beacons/batteries", headers=held).status_code == 304
    say(api, tlm(2890))
    written(api)
    assert api.client.get("/api/v1/beacons/batteries", headers=held).status_code == 200


def test_a_document_that_cannot_be_read_hides_no_other(api: Api, database: Database[Any]) -> None:
    database["telemetry"].insert_one(
        {"_id": OTHER, "latest": {"battery_mv": {"at": 1}, "humidity_percent": 5}}
    )
    say(api, tlm(2900))
    assert [row["mac"] for row in written(api)] == [MAC]
    body = {"level": "4", "location": "Room", "aliases": [OTHER]}
    assert api.client.put(f"/api/v1/beacons/{MAC}", json=body).status_code == 200
    assert [row["readings"].keys() for row in written(api)] == [SAID]
    assert database["telemetry"].distinct("_id") == [MAC]


def test_batches_without_advertisements_note_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Mock()
    monkeypatch.setattr(api.context.directory.telemetry, "note", note)
    more: list[dict[str, object]] = [{}, {"extra": 1}, {"raw": None}]
    for fields in more:
        item = {"staff_id": 7, "rssi": -60, "mac": MAC} | fields
        assert api.client.post("/api/v1/detections", json={"detections": [item]}).status_code == 200
    assert not note.called
