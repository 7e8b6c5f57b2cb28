"""The directory of beacons over the API."""

import itertools
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from pymongo.database import Database

from common.beacon import Beacon
from common.beacon_id import NOT_AN_ID
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Directory
from ingest.storage.places.coverage import Coverage
from tests import everyday
from tests.services.ingest.api.conftest import MAC, Api

HEADER = "mac,level,location,x,y\n"
OTHER = "AABBCCDDEEFF"


def load(api: Api, text: str | bytes, query: str = "", kind: str = "text/csv") -> Any:
    return api.client.post(f"/api/v1/beacons/import{query}", data=text, content_type=kind)


def test_a_beacon_is_registered_moved_and_taken_out(api: Api) -> None:
    api.hear(1, OTHER)
    place = {"level": "2", "location": 'Room "A" \\ 1', "x": 1.5, "y": -2}
    written = api.client.put("/api/v1/beacons/aa:bb:cc:dd:ee:ff", json=place)
    entry = {"mac": OTHER, "aliases": []} | place
    assert written.json == entry | {"corrected": 0, "correction": ""}
    api.hear(2, OTHER)  # this service sees it at once
    assert api.get(f"/beacons/{OTHER}") == entry
    moved = {"level": "3", "location": "Lobby"}
    assert api.client.put(f"/api/v1/beacons/{OTHER}", json=moved).status_code == 200
    assert {row["mac"] for row in api.get("/beacons")["data"]} == {MAC, OTHER}
    for _ in range(2):
        assert api.client.delete(f"/api/v1/beacons/{OTHER}").status_code == 204
    assert api.client.get(f"/api/v1/beacons/{OTHER}").status_code == 404
    api.hear(3, OTHER)
    known = [(row["level"], row["location"], row["known"]) for row in api.get("/staff")["data"]]
    assert known == [
        ("unknown", "unknown", False),
        ("2", 'Room "A" \\ 1', False),
        ("unknown", "unknown", False),
    ]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["level", "location"]),
        ({"level": "4", "location": ""}, ["location"]),
        ({"level": "4", "location": "a\nb"}, ["location"]),
        ({"level": "4", "location": "\ud800"}, ["location"]),
        ({"level": "x" * 65, "location": {"$ne": 1}}, ["level", "location"]),
        ({"level": "4", "location": "a", "x": 1}, ["x"]),
        ({"level": "4", "location": "a", "x": 1, "y": "NaN"}, ["y"]),
        ({"level": "4", "location": "a", "x": 1e7, "y": True}, ["x", "y"]),
    ],
)
def test_bad_places_are_named(api: Api, body: Any, fields: list[str]) -> None:
    answer = api.client.put(f"/api/v1/beacons/{OTHER}", json=body)
    assert answer.status_code == 400
    assert answer.json is not None
    assert [error["field"] for error in answer.json["errors"]] == fields
    assert api.client.get(f"/api/v1/beacons/{OTHER}").status_code == 404


def test_another_service_sees_a_write_without_its_refresh(
    api: Api, database: Database[Any]
) -> None:
    now = itertools.count(0, 2)  # each look at the clock is 2 s later
    elsewhere = Directory(Beacons(database), 3600, lambda: float(next(now)))
    assert OTHER not in elsewhere.current().places
    api.client.put(f"/api/v1/beacons/{OTHER}", json={"level": "5", "location": "Lobby"})
    assert elsewhere.current().places[OTHER].level == "5"


def test_a_file_is_loaded_whole_or_not_at_all(api: Api) -> None:
    good = f"{HEADER}{MAC},7,Roof,,\n{OTHER},1,Lobby A,4,12\n"
    bad = f"{good}zz,1,,1,\n"
    wrong = [
        {"line": 4, "field": "mac", "reason": NOT_AN_ID},
        {"line": 4, "field": "location", "reason": "is missing"},
    ]
    tried = load(api, bad, "?dry_run=1").json
    assert tried["errors"] == wrong
    assert (tried["added"], tried["changed"], tried["dry_run"]) == (1, 1, True)
    refused = load(api, bad)
    assert (refused.status_code, refused.json["errors"]) == (400, wrong)
    assert [row["level"] for row in api.get("/beacons")["data"]] == ["4"]
    done = load(api, good).json
    assert [done[name] for name in ("added", "changed", "unchanged", "others")] == [1, 1, 0, 0]
    again = load(api, good.encode("utf-8-sig")).json
    assert [again[name] for name in ("added", "changed", "unchanged", "others")] == [0, 0, 2, 0]
    assert {row["level"] for row in api.get("/beacons")["data"]} == {"1", "7"}


@pytest.mark.parametrize(
    ("text", "kind", "status"),
    [
        (b"mac,level\n", "text/csv", 400),
        (b"", "text/csv", 400),
        (b"mac," + b"x" * 200_000, "text/csv", 400),
        (HEADER.encode() + b'AABBCCDDEEFF,"1,Lobby,,\n', "text/csv", 400),
        (HEADER.encode() + b"AABBCCDDEEFF,1,\xff,,\n", "text/csv", 400),
        (HEADER.encode() + b"AABBCCDDEEFF,1,a,,\nAA:BB:CC:DD:EE:FF,2,b,,\n", "text/csv", 400),
        (HEADER.encode(), "application/json", 415),
        (HEADER.encode(), "text/csv; charset=utf-16", 415),
        (HEADER.encode() + b"x" * 1024 * 1024, "text/csv", 413),
        (
            HEADER.encode() + b"".join(b"%012X,1,a,,\n" % number for number in range(2001)),
            "text/csv",
            413,
        ),
    ],
)
def test_bad_files(api: Api, text: bytes, kind: str, status: int) -> None:
    assert load(api, text, kind=kind).status_code == status
    assert len(api.get("/beacons")["data"]) == 1


def test_writers_at_the_same_time_leave_one_beacon(api: Api, database: Database[Any]) -> None:
    services = [Beacons(database) for _ in range(4)]

    def write(number: int) -> None:
        level = str(random.randrange(7))
        services[number % 4].put([Beacon(OTHER, level, "Lobby"), Beacon(MAC, level, "Roof")])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(20)))
    beacons = services[0].read()
    assert sorted(beacon.mac for beacon in beacons) == sorted([MAC, OTHER])
    assert len({beacon.level for beacon in beacons}) == 1  # both from one write


@pytest.mark.parametrize("file", everyday.FILES, ids=ascii)
def test_an_everyday_file_is_taken_and_its_columns_are_told(api: Api, file: str) -> None:
    answer = load(api, file.encode())
    assert answer.status_code == 200, answer.text
    columns = answer.get_json()["columns"]
    assert set(columns) in ({"mac", "level", "location"}, set(HEADER.strip().split(",")))
    assert set(columns.values()) <= set(
        re.split("[,;\t\r\n]", re.sub('["\ufeff]|(?<=,) ', "", file))
    )
    beacon = api.get(f"/beacons/{everyday.MAC}")
    assert (beacon["level"], beacon["location"]) == (everyday.LEVEL, everyday.LOCATION)
    assert (beacon["x"], beacon["y"]) == ((12.5, 5) if "x" in columns else (None, None))
    file_again = api.client.get("/api/v1/beacons?format=csv").data
    assert file_again.startswith("\ufeffmac,".encode())  # Excel shows KÃ¼che without it
    assert load(api, file_again).get_json()["changed"] == 0


@pytest.mark.parametrize("file", everyday.REFUSED, ids=ascii)
def test_a_file_that_is_not_clear_is_refused_by_line(api: Api, file: str) -> None:
    answer = load(api, file.encode())
    assert answer.status_code == 400
    assert answer.get_json()["errors"][0]["line"] in (1, 2)


def test_a_position_that_looks_wrong_is_stored_and_told(api: Api) -> None:
    rooms = "".join(f"AABBCCDDEE{n:02},90,Room {n},{n * 9},3\n" for n in range(6))
    assert load(api, HEADER + rooms).get_json()["warnings"] == []
    place = {"level": "90", "location": "Room 7", "x": 2800, "y": 3}
    answer = api.client.put("/api/v1/beacons/AABBCCDDEE07", json=place).get_json()
    assert answer["warning"].startswith("x is 2800, far outside of its level")
    assert answer["x"] == 2800
    assert (
        "warning"
        not in api.client.put("/api/v1/beacons/AABBCCDDEE07", json=place | {"x": 28}).get_json()
    )
    typed = f"{HEADER}AABBCCDDEE08,90,Room 8,103.77012,1.29031\n"
    [warning] = load(api, typed, "?dry_run=1").get_json()["warnings"]
    assert warning.startswith("AABBCCDDEE08: x and y look like degrees")


def test_the_past_is_corrected_everywhere(api: Api) -> None:
    timestamp = api.hear(1, OTHER)
    api.hear(2, OTHER, ago=50)
    api.hear(2, MAC, ago=20)
    unknown = api.get("/beacons/unknown")["data"]
    assert [(beacon["mac"], beacon["count"], beacon["staff"]) for beacon in unknown] == [
        (OTHER, 2, [1, 2])
    ]
    assert unknown[0]["last_heard"] == timestamp
    url = f"/extractbeacon?staff_id=1&start_time=0&end_time={int(time.time()) + 10}"
    history = api.client.get(url)
    place = {"level": "6", "location": "Library"}
    address = f"/api/v1/beacons/{OTHER}?correct_past=1"
    with ThreadPoolExecutor(2) as threads:  # it takes its time, so a service does one at once
        asked = [threads.submit(api.client.put, address, json=place) for _ in range(2)]
        done, refused = sorted(
            (answer.result() for answer in asked), key=lambda answer: answer.status_code
        )
    assert (done.status_code, refused.status_code) == (200, 429)
    assert done.json is not None
    assert done.json["corrected"] == 2
    assert api.get("/beacons/unknown")["data"] == []
    assert [row["level"] for row in api.get("/staff")["data"]] == ["6", "4"]
    levels = [row["level"] for row in api.get("/staff/2/detections")["data"]]
    assert levels == ["4", "6"]
    again = api.client.get(url, headers={"If-None-Match": history.headers.get("ETag", "")})
    assert again.json == {"location": [place | {"timestamp": timestamp}]}


def test_addresses_heard_once_push_no_new_beacon_out_of_the_list(api: Api) -> None:
    items = [{"staff_id": n % 5, "mac": f"{n:012X}", "rssi": -80} for n in range(1, 1001)]
    answer = api.client.post("/api/v1/detections", json={"detections": items})
    assert answer.json is not None
    assert answer.json["counts"]["stored"] == len(items)
    for _ in range(3):
        api.hear(1, "AABBCC000001", ago=600)
        api.hear(1, "AABBCC000002", ago=600)
    api.hear(2, "AABBCC000003", ago=600)
    api.hear(3, "AABBCC000003", ago=600)
    api.hear(1, "AABBCC000002", ago=600)
    unknown = api.get("/beacons/unknown")
    assert [beacon["mac"] for beacon in unknown["data"][:3]] == [
        f"AABBCC00000{n}" for n in (3, 2, 1)
    ]
    assert {row["count"] for row in unknown["data"][3:]} == {1}
    assert unknown["truncated"]


def test_coverage_is_by_where_the_beacon_hung(api: Api) -> None:
    api.hear(1, ago=600)
    api.hear("guard", ago=125)
    load(api, f"{HEADER}{OTHER},4,Lobby B,3,4\nFFFFFFFFFFFE,1,Lobby A,,\n")
    lobby_a, lobby_b = api.get("/coverage")["data"]
    assert (lobby_a["last_visited"], lobby_a["staff_id"], lobby_a["minutes_ago"]) == (None,) * 3
    assert lobby_b["staff_id"] == "guard"
    assert lobby_b["minutes_ago"] == 2
    assert (lobby_b["macs"], lobby_b["x"], lobby_b["y"]) == ([OTHER, MAC], 3, 4)
    api.client.put(f"/api/v1/beacons/{MAC}", json={"level": "7", "location": "Roof"})
    visited = {row["location"]: row["last_visited"] for row in api.get("/coverage")["data"]}
    assert visited == {"Lobby A": None, "Lobby B": None, "Roof": None}


def test_a_location_is_as_old_as_its_oldest_entry(api: Api, database: Database[Any]) -> None:
    beacons, began = database["beacons"], int(time.time())

    def registered() -> dict[str, int | None]:
        return {row["location"]: row["registered_at"] for row in api.get("/coverage")["data"]}

    rows = [f"{OTHER},4,Lobby B,3,4\n", "AABBCC000001,1,Lobby A,,\n"]
    load(api, HEADER + "".join(rows))
    beacons.update_one({"_id": OTHER}, {"$set": {"registered_at": 1000}})
    beacons.update_one({"_id": MAC}, {"$unset": {"registered_at": 1}})  # as older versions wrote it
    dates = registered()
    assert dates["Lobby B"] is None
    assert began <= (dates["Lobby A"] or 0) <= time.time()
    beacons.update_one({"_id": MAC}, {"$set": {"registered_at": 2000}})
    rows += ["AABBCC000002,1,Lobby C,,\n"]
    load(api, HEADER + "".join(rows))  # the others are as they were, and as old
    assert registered()["Lobby B"] == 1000
    load(api, f"{HEADER}{OTHER},4,Lobby D,3,4\n")  # there it hangs from now on
    dates = registered()
    assert dates["Lobby B"] == 2000
    assert (dates["Lobby D"] or 0) >= began


def test_two_spots_of_one_name_are_two_locations(api: Api) -> None:
    rows = ["1,4,Lobby A,1,2", "2,4,Lobby A,60,2", "3,4,Lobby A,60,2", "4,4,Lobby A,,"]
    load(api, HEADER + "".join(f"AABBCC00000{row}\n" for row in rows))
    api.hear(1, "AABBCC000001")
    locations = [row for row in api.get("/coverage")["data"] if row["location"] == "Lobby A"]
    assert [row["macs"] for row in locations] == [
        ["AABBCC000001"],
        ["AABBCC000002", "AABBCC000003"],
        ["AABBCC000004"],
    ]
    assert [row["staff_id"] for row in locations] == [1, None, None]


@pytest.mark.parametrize("aliases", [(), ("AABBCC000001", "AABBCC000002")])
def test_questions_by_beacon_never_leave_their_index(
    api: Api, database: Database[Any], aliases: tuple[str, ...]
) -> None:
    api.hear(1, ago=60)
    api.hear(2, OTHER)
    behind = int(time.time()) - 7200
    item = {"staff_id": 3, "mac": MAC, "rssi": -60, "timestamp": behind}
    for n in range(3):
        body = {"detections": [item | {"event_id": f"{n}"}], "sent_at": behind}
        assert api.client.post("/api/v1/detections", json=body).status_code == 200
    commands: list[dict[str, Any]] = []
    staff = api.context.histories.detections._staff

    class Noting:
        name, database = staff.name, staff.database

        def find(self, *query: Any, **more: Any) -> Any:
            return staff.find(*query, **more)

        def aggregate(self, pipeline: list[dict[str, Any]], **more: Any) -> Any:
            options = {name: value for name, value in more.items() if name != "session"}
            commands.append({"aggregate": self.name, "pipeline": pipeline, "cursor": {}} | options)
            return staff.aggregate(pipeline, **more)

    noting = cast(Any, Noting())
    at_lobby = Beacon(MAC, "4", "Lobby B", aliases=aliases)
    place = {"level": "4", "location": "Lobby B"}
    for alias in aliases:
        for ago in (500, 600):
            row = {"staff_id": 1, "mac": alias, "timestamp": int(time.time()) - ago, "rssi": -60}
            database["staff"].insert_one(row | place)
    assert len(Coverage(noting).unknown_beacons(at_lobby.ids, 0)) == 1
    assert list(Coverage(noting).last_visits([at_lobby])) == [MAC]
    # And of the last visit one row is read: when it came is in no index. And one that tells that a
    # clock was wrong, and the last of those.
    for command, read in zip(commands, (0, 1, 1, 1), strict=True):
        plan = database.command("explain", command, verbosity="executionStats")
        text = str(plan)
        assert f"'totalDocsExamined': {read}" in text
        assert "COLLSCAN" not in text


def test_the_directory_is_a_file_that_can_be_loaded_again(api: Api) -> None:
    """Nor does a spreadsheet take a name for a formula, or a basement for a sum."""
    names = ["=1+1", "-2", 'Room "A", left', "'s Gravenhage", "'=1", "''-x", "Lobby"]
    for number, name in enumerate(names):
        place = {"level": "-1", "location": name} | ({"x": 1.5, "y": -2} if number % 2 else {})
        assert api.client.put(f"/api/v1/beacons/AABBCC00000{number}", json=place).status_code == 200
    answer = api.client.get("/api/v1/beacons?format=csv&level=-1")
    assert answer.mimetype == "text/csv"
    assert 'filename="beacons.csv"' in answer.headers["Content-Disposition"]
    lines = answer.text.splitlines()
    assert lines[0] == f"{HEADER.strip()},aliases"
    assert "AABBCC000000,'-1,'=1+1,,," in lines
    assert len(lines) == 1 + len(names)
    again = load(api, answer.data, "?dry_run=1").json
    assert (again["unchanged"], again["added"], again["changed"]) == (len(names), 0, 0)
    held = {"If-None-Match": answer.headers["ETag"]}
    assert api.client.get("/api/v1/beacons?format=csv&level=-1", headers=held).status_code == 304
    assert api.client.get("/api/v1/beacons?level=-1", headers=held).status_code == 200
    wrong = api.client.get("/api/v1/beacons?format=xlsx")
    assert (wrong.status_code, '"field":"format"' in wrong.text) == (400, True)


def test_a_file_tells_which_beacons_it_moves(api: Api) -> None:
    file = HEADER + "".join(f"AABBCC{n:06},1,Room {n},,\n" for n in range(120))
    assert load(api, file).json["moves"] == []
    moved = file.replace("Room 1,,", "Room 1,3,4").replace("000002,1", "000002,2")
    answer = load(api, moved, "?dry_run=1").json
    assert answer["changed"] == 2
    same = {"mac": "AABBCC000001", "level": "1", "location": "Room 1", "aliases": []}
    assert answer["moves"][0] == {
        "before": same | {"x": None, "y": None},
        "after": same | {"x": 3.0, "y": 4.0},
    }
    assert [move["after"]["level"] for move in answer["moves"]] == ["1", "2"]
    many = load(api, file.replace(",1,Room", ",3,Room"), "?dry_run=1").json
    assert (many["changed"], len(many["moves"])) == (120, 100)
