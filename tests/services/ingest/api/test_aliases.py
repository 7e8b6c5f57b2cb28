"""A beacon with several ids is one place: in every answer, whatever id was heard."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from common.beacon import MAX_ALIASES, TOO_MANY_ALIASES, Beacon
from common.directory import IdsRefused
from ingest import create_app
from ingest.config import Config
from ingest.recording import corrections
from ingest.storage.directory.beacons import Beacons
from scripts.processes.waiting import eventually
from tests.services.ingest.api.conftest import MAC, Api

IBEACON = "ibeacon:e2c56db5-dffb-48d2-b060-d0f5a71096e0:1:4660"
EDDYSTONE = "eddystone-uid:00112233445566778899:aabbccddeeff"
OTHER = "AABBCCDDEEFF"
PLACE = {"level": "4", "location": "Lobby B"}
ROOF = {"level": "7", "location": "Roof"}


def put(api: Api, mac: str, place: dict[str, Any] = PLACE, query: str = "", **more: Any) -> Any:
    answer = api.client.put(f"/api/v1/beacons/{mac}{query}", json=place | more)
    assert answer.status_code == 200, answer.text
    return answer.json


def refused(api: Api, mac: str, query: str = "", **more: Any) -> list[tuple[str, str]]:
    answer = api.client.put(f"/api/v1/beacons/{mac}{query}", json=PLACE | more)
    assert answer.status_code == 400, answer.text
    assert answer.json is not None
    return [(error["field"], error["reason"]) for error in answer.json["errors"]]


def entries(api: Api) -> dict[str, list[str]]:
    return {beacon["mac"]: beacon["aliases"] for beacon in api.get("/beacons")["data"]}


@pytest.fixture
def both(api: Api) -> Api:
    """Return a service whose only beacon has a MAC, and is an iBeacon."""
    put(api, MAC, aliases=[IBEACON])
    return api


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a correction not wait for services that there are none of."""
    monkeypatch.setattr(corrections, "CHECK_SECONDS", 0)
    monkeypatch.setattr(corrections, "READ_TIMEOUT_SECONDS", 0)
    monkeypatch.setattr(corrections, "LOOK_SECONDS", 0.1)


AS_ESPRESENSE_WRITES = "iBeacon:e2c56db5-dffb-48d2-b060-d0f5a71096e0-1-4660"


@pytest.mark.parametrize("mac", [MAC, "c2:a6:28:38:4b:08", IBEACON, AS_ESPRESENSE_WRITES])
def test_an_entry_is_answered_by_any_of_its_ids(both: Api, mac: str) -> None:
    at = {"x": None, "y": None, "aliases": [IBEACON]}
    assert both.get(f"/beacons/{mac}") == {"mac": MAC} | PLACE | at


def heard(api: Api) -> None:
    """Let one person hear the beacon by its MAC, and later another one by its other id."""
    api.hear(1, MAC, ago=300)
    api.hear(2, IBEACON, ago=120)


def staff(api: Api) -> Any:
    return [
        (person["mac"], person["level"], person["location"], person["known"])
        for person in api.get("/staff")["data"]
    ]


def histories(api: Api) -> Any:
    rows = [row for person in (1, 2) for row in api.get(f"/staff/{person}/detections")["data"]]
    return [(row["mac"], row["level"], row["location"], row.get("x")) for row in rows]


def coverage(api: Api) -> Any:
    [spot] = api.get("/coverage")["data"]
    return spot["macs"], spot["aliases"], spot["staff_id"], spot["minutes_ago"]


def visits(api: Api) -> Any:
    now = int(time.time())
    answer = api.get("/visits", location="Lobby B", **{"from": str(now - 900), "to": str(now)})
    return sorted(visit["staff_id"] for visit in answer["data"])


def legacy(api: Api) -> Any:
    rows = api.client.get("/retrieveformonitoring").get_json()["location"]
    return sorted((row["staff_id"], row["mac"], row["level"], row["location"]) for row in rows)


def now(api: Api) -> Any:
    return [
        (level["level"], [person["location"] for person in level["staff"]])
        for level in api.get("/now")["levels"]
    ]


ANSWERS = [
    (staff, [(MAC, "4", "Lobby B", True), (IBEACON, "4", "Lobby B", True)]),
    (histories, [(MAC, "4", "Lobby B", 1.5), (IBEACON, "4", "Lobby B", 1.5)]),
    (now, [("4", ["Lobby B", "Lobby B"])]),
    (coverage, ([MAC], [IBEACON], 2, 2)),
    (visits, [1, 2]),
    (legacy, [(1, MAC, "4", "Lobby B"), (2, IBEACON, "4", "Lobby B")]),
    (lambda api: api.get("/beacons/unknown")["data"], []),
]


@pytest.mark.parametrize(("read", "expected"), ANSWERS)
def test_both_ids_are_one_place_in_every_answer(both: Api, read: Any, expected: Any) -> None:
    put(both, MAC, x=1.5, y=2)
    heard(both)
    assert read(both) == expected


def test_changes_tell_the_place_of_either(both: Api) -> None:
    def lines(**query: str) -> list[dict[str, Any]]:
        text = both.client.get("/api/v1/changes", query_string=query).text
        return [json.loads(line) for line in text.splitlines()]

    cursor = lines()[-1]["next"]
    heard(both)
    eventually(lambda: len(lines(after=cursor)) == 3, 30)
    told = [(line["mac"], line["location"]) for line in lines(after=cursor)[:2]]
    assert told == [(MAC, "Lobby B"), (IBEACON, "Lobby B")]


def test_an_id_that_is_heard_is_told_as_it_was_heard(both: Api) -> None:
    sent = [{"staff_id": 1, "mac": IBEACON, "rssi": -60}, {"staff_id": 1, "mac": MAC, "rssi": -60}]
    answer = both.client.post("/api/v1/detections", json={"detections": sent})
    assert answer.json is not None
    told = [(row["mac"], row["known"], row["location"]) for row in answer.json["results"]]
    assert told == [(IBEACON, True, "Lobby B"), (MAC, True, "Lobby B")]


def test_coverage_tells_the_last_visit_by_a_clock_that_was_ahead(both: Api) -> None:
    both.hear(1, MAC, ago=-3600)  # came now
    time.sleep(1.1)
    both.hear(2, IBEACON)
    assert coverage(both)[2] == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [IBEACON]),
        ({"aliases": None}, [IBEACON]),
        ({"aliases": []}, []),
        ({"aliases": [EDDYSTONE]}, [EDDYSTONE]),
        ({"aliases": [EDDYSTONE, IBEACON, EDDYSTONE, MAC]}, [EDDYSTONE, IBEACON]),
        ({"aliases": [{"namespace": "00112233445566778899", "instance": "AABBCCDDEEFF"}]},
         [EDDYSTONE]),
    ],
)  # fmt: skip
def test_who_knows_no_aliases_loses_none(both: Api, body: Any, expected: list[str]) -> None:
    assert put(both, MAC, **body)["aliases"] == expected
    assert entries(both) == {MAC: expected}


@pytest.mark.parametrize(
    ("aliases", "reason"),
    [
        (["no id"], "id 1 must be a MAC address"),
        ([IBEACON, 7], "id 2 must be a MAC address"),
        ([IBEACON, "000000000000"], "id 2 must be the MAC address of a beacon"),
        ([IBEACON, "irk:" + "ab" * 16], "id 2 must be no identity resolving key"),
        ([f"AABBCC0000{n:02}" for n in range(MAX_ALIASES + 1)], TOO_MANY_ALIASES),
        ({"a": 1}, "must be a list of ids"),
        (7, "must be a list of ids"),
    ],
)
def test_bad_aliases_are_named(both: Api, aliases: Any, reason: str) -> None:
    [(field, said)] = refused(both, MAC, aliases=aliases)
    assert field == "aliases"
    assert said.startswith(reason)
    assert entries(both) == {MAC: [IBEACON]}


def test_an_id_belongs_to_one_beacon(both: Api) -> None:
    put(both, OTHER, ROOF)
    mine = "is another id of the beacon"
    assert refused(both, IBEACON) == [("mac", f"{mine} {MAC}")]
    for name, owner in ((IBEACON, MAC), (MAC, MAC)):
        said = [("aliases", f"{name} is an id of the beacon {owner}")]
        assert refused(both, OTHER, aliases=[name]) == said
    gone = both.client.delete(f"/api/v1/beacons/{IBEACON}")
    assert gone.status_code == 400
    assert f"{mine} {MAC}" in gone.text
    assert entries(both) == {MAC: [IBEACON], OTHER: []}


def test_aliases_that_are_added_one_by_one_are_bounded_too(api: Api) -> None:
    put(api, MAC, aliases=[f"AABBCC0000{n:02}" for n in range(MAX_ALIASES)])
    put(api, OTHER, ROOF, aliases=[IBEACON])
    others = [f"AABBCC0000{n:02}" for n in range(MAX_ALIASES - 1)]
    # Its own id takes the last place; what comes along with it has none.
    said = refused(api, MAC, "?take=1", aliases=[*others, OTHER])
    assert said == [("aliases", TOO_MANY_ALIASES)]
    assert len(entries(api)) == 2


def test_writers_at_the_same_time_give_an_id_to_one_beacon(
    both: Api, database: Database[Any]
) -> None:
    macs = [f"AABBCC0000{n:02}" for n in range(6)]
    services = [Beacons(database) for _ in range(3)]

    def write(number: int) -> bool:
        wanted = Beacon(macs[number], "7", "Roof", aliases=(EDDYSTONE,))
        try:
            services[number % 3].put([wanted])
        except IdsRefused:
            return False
        return True

    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(write, range(len(macs)))) == 1
    both.context.directory.cache.reload()
    assert list(entries(both).values()).count([EDDYSTONE]) == 1


def test_two_beacons_become_one_and_two_again(both: Api) -> None:
    put(both, OTHER, ROOF, aliases=[EDDYSTONE])
    for _ in range(2):  # sent again it is the same
        merged = put(both, MAC, query="?take=1", aliases=[IBEACON, OTHER])
        assert merged["aliases"] == [OTHER, EDDYSTONE, IBEACON]
        assert list(entries(both)) == [MAC]
    both.hear(1, EDDYSTONE)
    assert staff(both) == [(EDDYSTONE, "4", "Lobby B", True)]
    for _ in range(2):
        assert put(both, OTHER, query="?take=1")["aliases"] == []
        assert entries(both) == {MAC: [EDDYSTONE, IBEACON], OTHER: []}
    # Another of its ids becomes the one by which it is listed.
    put(both, IBEACON, query="?take=1", aliases=[MAC])
    assert entries(both) == {IBEACON: sorted([MAC, EDDYSTONE]), OTHER: []}


def test_a_beacon_hangs_where_it_did_since_it_did(both: Api, database: Database[Any]) -> None:
    database["beacons"].update_one({"_id": MAC}, {"$set": {"registered_at": 1000}})
    put(both, MAC, aliases=[EDDYSTONE, IBEACON])
    put(both, EDDYSTONE, ROOF, "?take=1")
    since = {row["location"]: row["registered_at"] for row in both.get("/coverage")["data"]}
    assert since["Lobby B"] == 1000
    assert since["Roof"] > 1000


@pytest.mark.long
@pytest.mark.usefixtures("unhurried")
def test_the_past_of_all_ids_is_corrected_and_given_back(api: Api) -> None:
    api.hear(1, MAC, ago=60)
    api.hear(2, IBEACON, ago=50)
    api.hear(3, OTHER, ago=40)
    question = f"/beacons/{MAC}/correction"
    assert api.get(question, **PLACE)["detections"] == 0
    foreseen = api.get(question, **PLACE, aliases=f"{IBEACON} {OTHER}")
    assert [person["staff_id"] for person in foreseen["staff"]] == [2, 3]
    done = put(api, MAC, ROOF, "?correct_past=1", aliases=[IBEACON, OTHER])
    assert (done["corrected"], done["aliases"]) == (3, [OTHER, IBEACON])
    assert {row[2] for row in staff(api)} == {"Roof"}
    # By any id; the one that it has no more by itself.
    put(api, MAC, aliases=[IBEACON])
    undo = f"?id={done['correction']}"
    undone = [
        api.client.delete(f"/api/v1/beacons/{mac}/correction{undo}").get_json()["undone"]
        for mac in (IBEACON, OTHER)
    ]
    assert undone == [2, 1]
    assert {row[0]: row[2] for row in staff(api)} == {
        MAC: "Lobby B",
        IBEACON: "unknown",
        OTHER: "unknown",
    }
    again = api.client.post(f"/api/v1/beacons/{IBEACON}/correction")
    assert (again.status_code, again.get_json()["corrected"]) == (200, 1)


@pytest.mark.long
@pytest.mark.usefixtures("unhurried")
def test_what_is_split_off_meanwhile_keeps_its_place(both: Api, database: Database[Any]) -> None:
    """Its detections with the new place stay; those of the other ids with that place do not."""
    corrected = both.context.directory.corrections
    beacons = both.context.directory.beacons
    entry = beacons.find([MAC])[MAC]._replace(level="6", location="Library")
    [now] = beacons.put([entry]).beacons
    put(both, IBEACON, ROOF, "?take=1")
    for mac in (MAC, IBEACON):
        database["staff"].insert_one(
            {"staff_id": 1, "mac": mac, "timestamp": int(time.time()), "rssi": -60} | ROOF
        )
    assert corrected.correct(now, "a") == (1, None)
    places = {row["mac"]: row["location"] for row in database["staff"].find()}
    assert places == {MAC: "Library", IBEACON: "Roof"}


HEAD = "mac,level,location,aliases"
KONTAKT = "Unique ID,Name,MAC Address,Floor,Proximity UUID,Major,Minor,Namespace,Instance ID"
UUID, NAMESPACE = "E2C56DB5-DFFB-48D2-B060-D0F5A71096E0", "00112233445566778899"


def load(api: Api, *lines: str, query: str = "") -> Any:
    file = "\n".join([*lines, ""])
    return api.client.post(f"/api/v1/beacons/import{query}", data=file, content_type="text/csv")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["mac,level,location", f"{MAC},4,Lobby B"], [IBEACON]),
        ([HEAD, f"{MAC},4,Lobby B,"], []),
        ([HEAD, f"{MAC},4,Lobby B,{EDDYSTONE} {IBEACON}"], [EDDYSTONE, IBEACON]),
        ([HEAD, f'{MAC},4,Lobby B,"{EDDYSTONE};\n{IBEACON}"'], [EDDYSTONE, IBEACON]),
        ([HEAD.replace(",", ";"), f'{MAC};4;Lobby B;"{EDDYSTONE};{OTHER}"'], [OTHER, EDDYSTONE]),
        ([KONTAKT, f"k7,Lobby B,{MAC},4,,,,,"], [IBEACON]),
        ([KONTAKT, f"k7,Lobby B,{MAC},4,{UUID},,,{NAMESPACE},AABBCCDDEEFF"], [EDDYSTONE, IBEACON]),
        ([KONTAKT, f"k7,Lobby B,{MAC},4,{UUID},1,4660,,"], [IBEACON]),
        (["mac,level,location,uuid", f"{MAC},4,Lobby B,a key of a row"], [IBEACON]),
    ],
)
def test_a_file_tells_aliases(both: Api, lines: list[str], expected: list[str]) -> None:
    trial = load(both, *lines, query="?dry_run=1").get_json()
    assert entries(both) == {MAC: [IBEACON]}
    after = [move["after"]["aliases"] for move in trial["moves"]]
    assert after == ([] if expected == [IBEACON] else [expected])
    assert load(both, *lines).get_json()["changed"] == len(after)
    assert entries(both) == {MAC: expected}
    exported = both.client.get("/api/v1/beacons?format=csv").text.splitlines()
    assert load(both, *exported).get_json()["unchanged"] == 1


@pytest.mark.parametrize(
    ("line", "field", "reason"),
    [
        (f"{OTHER},4,Roof,{IBEACON}", "aliases", f"{IBEACON} is an id of the beacon {MAC}"),
        (f"{OTHER},4,Roof,{MAC}", "aliases", f"{MAC} is an id of the beacon {MAC}"),
        (f"{IBEACON},4,Roof,", "mac", f"is another id of the beacon {MAC}"),
        (f"{OTHER},4,Roof,AABBCC000001", "aliases", "AABBCC000001 stands in an earlier line too"),
        (f"{OTHER},4,Roof,{EDDYSTONE} x", "aliases", "id 2 must be a MAC address"),
        (f"{OTHER},4,Roof,{'x' * 2000}", "aliases", TOO_MANY_ALIASES),
        (f"{OTHER},4,Roof,{' '.join(f'AABBCC0001{n:02}' for n in range(8))}", "aliases",
         TOO_MANY_ALIASES),
    ],
)  # fmt: skip
@pytest.mark.parametrize("query", ["", "?dry_run=1"])
def test_a_line_with_ids_of_others_is_named(
    both: Api, line: str, field: str, reason: str, query: str
) -> None:
    answer = load(both, HEAD, "AABBCC000001,4,Cellar,", line, query=query)
    error = answer.get_json()["errors"][0]
    assert (error["line"], error["field"]) == (3, field)
    assert error["reason"].startswith(reason)
    assert entries(both) == {MAC: [IBEACON]}


def test_a_file_may_move_an_alias_from_one_beacon_to_another(both: Api) -> None:
    assert load(both, HEAD, f"{MAC},4,Lobby B,", f"{OTHER},7,Roof,{IBEACON}").status_code == 200
    assert entries(both) == {MAC: [], OTHER: [IBEACON]}
    assert load(both, HEAD, f"{OTHER},7,Roof,", f"{IBEACON},7,Cellar,").status_code == 200
    assert entries(both) == {MAC: [], OTHER: [], IBEACON: []}


@pytest.fixture
def another(mongod: str, tmp_path: Path) -> Iterator[Api]:
    """Return a second service of the same database."""
    spool = str(tmp_path / "another.db")
    api = Api(create_app(Config(mongodb_uri=mongod, mongodb_timeout_ms=5000, spool_file=spool)))
    yield api
    api.context.close()


def test_another_service_knows_an_alias_soon(api: Api, another: Api) -> None:
    assert entries(another) == {MAC: []}
    put(api, MAC, aliases=[IBEACON])
    eventually(lambda: IBEACON in another.context.directory.cache.current().places, 30)
    another.hear(1, IBEACON)
    assert staff(api) == [(IBEACON, "4", "Lobby B", True)]


def test_the_audit_tells_of_aliases_and_of_what_went(both: Api) -> None:
    put(both, OTHER, ROOF)
    put(both, MAC, query="?take=1", aliases=[IBEACON, OTHER])
    [entry, *_] = both.get("/audit")["data"]
    assert (entry["what"], entry["of"]) == ("beacon put", MAC)
    assert entry["details"]["aliases"] == f"{OTHER} {IBEACON}"
    assert entry["details"]["gone"] == OTHER
