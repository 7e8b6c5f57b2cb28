"""The names and teams of people over the API."""

import csv
import itertools
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from flask import Response
from flask.testing import FlaskClient
from pymongo.database import Database

from common.revisions import CHECK_SECONDS
from common.routes import FILE_BODY_BYTES
from ingest.api.people import unnamed
from ingest.api.people.person_input import MAX_FILE_PEOPLE
from ingest.api.places import coverage
from ingest.errors import StoreUnavailable
from ingest.storage.people import people as stored
from ingest.storage.people import people_cache
from ingest.storage.people.people import People
from ingest.storage.people.people_cache import PeopleCache
from scripts.processes.waiting import eventually
from tests.services.ingest.api.conftest import Api

MIB = 1 << 20
HEADER = "staff_id,name,team,note,on_duty\n"
JANE = {"staff_id": 7, "name": "Jane Tan", "team": "Cleaning", "note": "", "on_duty": True}


def put(api: Api, staff_id: object, body: Any, **headers: str) -> Any:
    return api.client.put(f"/api/v1/people/{staff_id}", json=body, headers=headers)


def load(api: Api, text: str | bytes, query: str = "", kind: str = "text/csv") -> Any:
    return api.client.post(f"/api/v1/people/import{query}", data=text, content_type=kind)


def test_a_person_is_named_renamed_and_forgotten(api: Api) -> None:
    written = put(api, "7", {"name": " Jane\u00a0Tan ", "team": "Cleaning"})
    assert (written.status_code, written.json) == (200, JANE)
    assert api.get("/people") == {"data": [JANE]}
    assert api.get("/people/7") == JANE
    married = {"name": "Jane Lim", "note": 'Deaf: "text" her', "on_duty": False}
    assert put(api, "7", married).json == JANE | married | {"team": ""}
    assert api.get("/people")["data"] == [JANE | married | {"team": ""}]
    for _ in range(2):
        assert api.client.delete("/api/v1/people/7").status_code == 204
    assert api.get("/people") == {"data": []}
    assert api.client.get("/api/v1/people/7").status_code == 404


def test_an_id_is_stored_as_that_of_detections(api: Api, database: Database[Any]) -> None:
    api.hear(7)
    api.hear(str(2**53))
    for staff_id in ("7.0", str(2**53), "SDA-001"):
        assert put(api, staff_id, {"name": f"No. {staff_id}"}).status_code == 200
    assert {row["_id"] for row in database["people"].find()} == {7, str(2**53), "SDA-001"}
    assert {row["_id"] for row in database["latest"].find()} <= {7, str(2**53)}
    answers = {row["staff_id"] for row in api.get("/people")["data"]}
    assert answers == {7, str(2**53), "SDA-001"}


def test_people_come_by_name_as_people_read(api: Api) -> None:
    names = ["Staff 10", "staff 9", "Ägir", "Zoe", "adam", "Staff 2"]
    for number, name in enumerate(names):
        put(api, number, {"name": name})
    told = [row["name"] for row in api.get("/people")["data"]]
    assert told == ["adam", "Ägir", "Staff 2", "staff 9", "Staff 10", "Zoe"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["name"]),
        ({"name": "", "team": "a\nb"}, ["name", "team"]),
        ({"name": "x" * 65, "team": "x" * 65, "note": "x" * 257}, ["name", "team", "note"]),
        ({"name": "\ud800", "on_duty": "perhaps"}, ["name", "on_duty"]),
        ({"name": {"$ne": 1}, "team": ["a"], "on_duty": 1}, ["name", "team", "on_duty"]),
        ({"name": "Jane", "team": True}, ["team"]),
    ],
)
def test_what_is_wrong_with_a_person_is_named(strict: Api, body: Any, fields: list[str]) -> None:
    answer = put(strict, 7, body)
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json["errors"]] == fields


def test_texts_fit_up_to_their_bounds(api: Api) -> None:
    longest = {"name": "名" * 64, "team": "\U0001f9f9" * 64, "note": "é" * 256}
    assert put(api, 7, longest).json == {"staff_id": 7, "on_duty": True} | longest
    assert api.get("/people")["data"][0]["note"] == "é" * 256


@pytest.mark.parametrize("staff_id", ["a b", "9007199254740993.0", "a$", "x" * 65, "%2e%2e"])
def test_a_bad_id_is_no_person(strict: Api, staff_id: str) -> None:
    for answer in (
        put(strict, staff_id, {"name": "Jane"}),
        strict.client.get(f"/api/v1/people/{staff_id}"),
        strict.client.delete(f"/api/v1/people/{staff_id}"),
    ):
        assert answer.status_code in (400, 404)
        assert "staff_id" in answer.text or answer.status_code == 404


def test_only_what_was_read_is_replaced(api: Api) -> None:
    assert put(api, 7, {"name": "Jane"}, **{"If-Match": "*"}).status_code == 412
    assert put(api, 7, {"name": "Jane"}, **{"If-Match": '"old"'}).status_code == 412
    put(api, 7, {"name": "Jane"})
    tag = api.client.get("/api/v1/people/7").headers["ETag"]
    mine = put(api, 7, {"name": "Jane Tan"}, **{"If-Match": tag})
    assert mine.status_code == 200
    theirs = put(api, 7, {"name": "Janet"}, **{"If-Match": tag})
    assert (theirs.status_code, theirs.json["code"]) == (412, "precondition_failed")
    assert api.get("/people/7")["name"] == "Jane Tan"
    again = put(api, 7, {"name": "Janet"}, **{"If-Match": mine.headers["ETag"]})
    assert again.status_code == 200
    new = {"If-None-Match": "*"}
    there = put(api, 7, {"name": "John"}, **new)
    assert (there.status_code, there.json["code"]) == (412, "precondition_failed")
    assert there.json["detail"] == "staff 7 is Janet already: edit that entry"
    assert put(api, 8, {"name": "John"}, **new).status_code == 200


def test_of_two_who_read_the_same_one_replaces_it(api: Api) -> None:
    put(api, 7, {"name": "Jane"})
    tag = api.client.get("/api/v1/people/7").headers["ETag"]
    clients = [api.client.application.test_client() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(
            lambda number: clients[number].put(
                "/api/v1/people/7", json={"name": f"Jane {number}"}, headers={"If-Match": tag}
            ),
            range(4),
        )
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]


def test_an_answer_that_holds_is_not_sent_again(api: Api) -> None:
    put(api, 7, {"name": "Jane", "team": "A"})
    for path in ("/api/v1/people", "/api/v1/people?team=A", "/api/v1/people?format=csv"):
        tag = api.client.get(path).headers["ETag"]
        assert api.client.get(path, headers={"If-None-Match": tag}).status_code == 304
    put(api, 8, {"name": "John"})
    assert api.client.get("/api/v1/people?format=csv", headers={"If-None-Match": tag}).data


def test_a_team_is_told_alone(api: Api) -> None:
    put(api, 7, {"name": "Jane", "team": "Cleaning"})
    put(api, 8, {"name": "John", "team": "Security"})
    put(api, 9, {"name": "Joan"})
    for team, staff_ids in (("Cleaning", [7]), ("Other", []), ("", [7, 9, 8]), ("Clean%69ng", [])):
        assert [row["staff_id"] for row in api.get("/people", team=team)["data"]] == staff_ids
    file = api.client.get("/api/v1/people?format=csv&team=Security")
    assert file.text == HEADER.replace("\n", "\r\n") + "8,John,Security,,true\r\n"


def test_who_asks_for_teams_has_nobody_else_read_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage._shared, "_seconds", 3600)
    stored_visits = api.context.places.coverage
    last_visits = Mock(wraps=stored_visits.last_visits)
    monkeypatch.setattr(stored_visits, "last_visits", last_visits)
    for team in ("", "Cleaning", "", "Security", ""):
        api.get("/coverage", team=team)
    assert last_visits.call_count == 3


def test_no_tag_holds_for_who_was_of_a_team_before(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = api.context.people.names
    snapshots = []
    for team in ("Cleaning", "Security"):
        put(api, 7, {"name": "Jane", "team": team})
        snapshots.append(names.current())
    api.hear(7)
    with monkeypatch.context() as meanwhile:  # she changes teams while the answer is made
        meanwhile.setattr(names, "current", Mock(side_effect=snapshots))
        before = api.client.get("/api/v1/staff?team=Cleaning")
    held = {"If-None-Match": before.headers["ETag"]}
    after = api.client.get("/api/v1/staff?team=Cleaning", headers=held)
    assert after.status_code == 200
    assert after.json is not None
    assert after.json["data"] == []


def test_a_file_is_the_one_that_was_written(api: Api) -> None:
    for staff_id, body in (
        ("-1a", {"name": "=1+1", "team": "@x", "note": "'=1"}),
        ("007", {"name": "名", "note": '\'a, "b"; c', "on_duty": False}),
        (7, {"name": "Jane"}),
    ):
        assert put(api, staff_id, body).status_code == 200
    before = api.get("/people")
    file = api.client.get("/api/v1/people?format=csv")
    assert file.headers["Content-Disposition"] == 'attachment; filename="people.csv"'
    assert "'=1+1,'@x" in file.text
    assert "'-1a" in file.text
    assert file.text.startswith("\ufeff")
    assert load(api, file.data).json["unchanged"] == 3
    for staff_id in ("-1a", "007", 7):
        api.client.delete(f"/api/v1/people/{staff_id}")
    assert load(api, file.data).json["added"] == 3
    assert api.get("/people") == before


def test_a_file_is_tried_and_loaded(api: Api) -> None:
    put(api, 1, {"name": "Ann", "team": "A", "note": "old"})
    put(api, 2, {"name": "Ben"})
    put(api, 3, {"name": "Cem"})
    text = HEADER + "1,Ann,B,,\n2,Ben,,,yes\n4,Dan,B,new,no\n"
    tried = load(api, text, "?dry_run=1").json
    counts = {name: tried[name] for name in ("added", "changed", "unchanged", "others")}
    assert counts == {"added": 1, "changed": 1, "unchanged": 1, "others": 1}
    [change] = tried["changes"]
    assert change["before"] == JANE | {"staff_id": 1, "name": "Ann", "team": "A", "note": "old"}
    assert change["after"] == JANE | {"staff_id": 1, "name": "Ann", "team": "B", "note": ""}
    assert len(api.get("/people")["data"]) == 3
    done = load(api, text).json
    assert done == tried | {"dry_run": False}
    assert [row["on_duty"] for row in api.get("/people")["data"]] == [True, True, True, False]
    assert load(api, text).json["unchanged"] == 3


def test_what_a_file_has_no_column_for_stays(api: Api) -> None:
    put(api, 7, {"name": "Jane", "team": "A", "note": "Deaf", "on_duty": False})
    file = "Department;Employee ID;FULL_NAME;Salary\nB;7;Jane Tan;1\nB;8;John;1\n"
    done = load(api, "\ufeff" + file).json
    assert (done["added"], done["changed"]) == (1, 1)
    assert done["columns"] == {"staff_id": "Employee ID", "name": "FULL_NAME", "team": "Department"}
    assert api.get("/people/7") == JANE | {"team": "B", "note": "Deaf", "on_duty": False}
    assert api.get("/people/8")["on_duty"] is True


def test_bad_lines_are_named_and_nothing_is_loaded(api: Api) -> None:
    text = (
        f"{HEADER}7,Jane,,,\n7.0,Twice,,,\na b,Bad,,,\n8,,,,\n9,x,,,perhaps\n10,x\nunnamed,x,,,\n"
        f"11,{'n' * 65},{'t' * 65},{'o' * 257},\n"
    )
    errors = load(api, text, "?dry_run=1").json["errors"]
    assert [(error["line"], error["field"]) for error in errors] == [
        (3, "staff_id"),
        (4, "staff_id"),
        (5, "name"),
        (6, "on_duty"),
        (7, "line"),
        (8, "staff_id"),
        (9, "name"),
        (9, "team"),
        (9, "note"),
    ]
    refused = load(api, text)
    assert refused.status_code == 400
    assert refused.json["errors"] == errors
    assert api.get("/people") == {"data": []}


@pytest.mark.parametrize(
    ("text", "field"),
    [("", "header"), ("id;team\n7;a", "header"), ('staff_id,name\n"7,a', "line")],
)
def test_what_is_no_file_of_people(api: Api, text: str, field: str) -> None:
    answer = load(api, text)
    assert answer.status_code == 400
    assert answer.json["errors"][0]["field"] == field


def test_who_was_heard_and_has_no_name(api: Api) -> None:
    heard = {staff_id: api.hear(staff_id, ago=ago) for staff_id, ago in ((1, 5), ("x", 9), (2, 0))}
    put(api, 1, {"name": "Ann"})
    answer = api.get("/people/unnamed")
    assert answer == {
        "data": [
            {"staff_id": 2, "last_heard": heard[2]},
            {"staff_id": "x", "last_heard": heard["x"]},
        ],
        "truncated": False,
    }


def test_another_service_sees_a_write_soon(api: Api, database: Database[Any]) -> None:
    elsewhere = PeopleCache(People(database), lambda: None)
    assert elsewhere.current().teams == {}
    put(api, 7, {"name": "Jane", "team": "A"})
    eventually(lambda: elsewhere.current().teams == {7: "A"}, CHECK_SECONDS + 10)


def test_a_lost_database_leaves_the_old_copy(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(api, 7, {"name": "Jane"})
    monkeypatch.setattr(people_cache, "CHECK_SECONDS", 0)
    everybody = api.get("/people")
    monkeypatch.setattr(stored, "READ_TIMEOUT_SECONDS", 1e-6)
    assert api.get("/people") == everybody
    fresh = PeopleCache(People(database), lambda: None)
    with pytest.raises(StoreUnavailable):
        fresh.current()


@pytest.fixture
def full(api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch) -> Api:
    """Return a service whose directory has all the people that it may have."""
    monkeypatch.setattr(stored, "READ_ALL_SECONDS", 60)  # traced, on a machine that is full
    rows = (
        {"_id": number, "name": f"Jane Tan {number}", "team": f"Team {number % 40}"}
        for number in range(stored.MAX_PEOPLE)
    )
    more = {"note": "n" * 60, "on_duty": True}
    database["people"].insert_many(row | more for row in rows)
    return api


def test_no_more_people_than_can_be_kept(full: Api) -> None:
    refused = put(full, "new", {"name": "Joan"})
    assert (refused.status_code, refused.json["code"]) == (409, "conflict")
    assert str(stored.MAX_PEOPLE) in refused.json["detail"]
    assert put(full, 7, {"name": "Joan"}).status_code == 200
    file = f"{HEADER}7,Joan Lim,,,\nnew,Jim,,,\n"
    for query in ("", "?dry_run=1"):
        assert load(full, file, query).status_code == 409
    assert full.get("/people/7")["name"] == "Joan"
    assert full.client.delete("/api/v1/people/8").status_code == 204
    assert load(full, file).json["others"] == stored.MAX_PEOPLE - 2


def test_no_longer_notes_than_can_be_kept(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_PEOPLE_BYTES", 500)
    assert put(api, 7, {"name": "Jane", "note": "n" * 256}).status_code == 200
    refused = put(api, 8, {"name": "John", "note": "n" * 256})
    assert (refused.status_code, "500" in refused.json["detail"]) == (409, True)
    assert put(api, 7, {"name": "Jane"}).status_code == 200
    assert put(api, 8, {"name": "John", "note": "n" * 256}).status_code == 200


def test_all_people_are_never_held_as_objects(full: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "READ_ALL_SECONDS", 60)  # traced it takes long
    client = FlaskClient(full.client.application, Response)  # believes all that comes
    tracemalloc.start()
    try:
        teams = len(full.context.people.names.current().teams)
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        size = {
            kind: sum(map(len, client.get(f"/api/v1/people?format={kind}").response))
            for kind in ("json", "csv")
        }
        _, told = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert teams == stored.MAX_PEOPLE
    assert min(size.values()) > 1.5 * MIB
    assert (kept < 2.5 * MIB, peak < 4 * MIB, told < kept + 2 * MIB) == (True, True, True)


def test_the_largest_file_of_people_is_loaded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "WRITE_TIMEOUT_SECONDS", 60)  # as above
    rows = (f"{number},\U0001f9f9 {number},,{'x' * 180},\n" for number in itertools.count())
    file = HEADER + "".join(itertools.islice(rows, MAX_FILE_PEOPLE))
    assert FILE_BODY_BYTES * 0.9 < len(file.encode()) < FILE_BODY_BYTES
    put(api, 7, {"name": "Jane"})
    tracemalloc.start()
    try:
        done = load(api, file).json
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (done["added"], done["changed"]) == (MAX_FILE_PEOPLE - 1, 1)
    assert peak < 9 * MIB
    refused = load(api, file + "more,Jane,,,\n", "?dry_run=1")
    assert (refused.status_code, refused.json["code"]) == (413, "too_large")
    assert str(MAX_FILE_PEOPLE) in refused.json["detail"]


def test_of_many_who_have_no_name_the_last_are_told(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unnamed, "MAX_UNNAMED", 2)
    for staff_id in range(3):
        api.hear(staff_id, ago=staff_id)
    answer = api.get("/people/unnamed")
    assert [row["staff_id"] for row in answer["data"]] == [0, 1]
    assert answer["truncated"] is True


def test_a_file_of_a_history_has_the_name_where_it_is_asked_for(api: Api) -> None:
    api.hear(7)
    path = "/api/v1/staff/7/detections?format="

    def columns(query: str) -> dict[str, str]:
        [row] = csv.DictReader(api.client.get(path + "csv" + query).text.splitlines())
        return {name: row[name] for name in ("name", "team") if name in row}

    assert columns("") == columns("&names=0") == {}
    assert columns("&names=1") == {"name": "", "team": ""}
    put(api, 7, {"name": "=Jane", "team": "Cleaning"})
    assert columns("&names=1") == {"name": "'=Jane", "team": "Cleaning"}
    assert columns("") == {}
    tag = api.client.get(f"{path}csv&names=1").headers["ETag"]
    put(api, 7, {"name": "Jane Tan"})
    held = {"If-None-Match": tag}
    assert api.client.get(f"{path}csv&names=1", headers=held).status_code == 200
    [feature] = api.get("/staff/7/detections", format="geojson", names=1)["features"]
    assert (feature["properties"]["name"], feature["properties"]["team"]) == ("Jane Tan", "")
    [feature] = api.get("/staff/7/detections", format="geojson")["features"]
    assert "name" not in feature["properties"]
