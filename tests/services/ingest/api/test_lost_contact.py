"""What is said of who lost contact: every service tells it, until they are heard again."""

import time
from typing import Any

import pytest
from pymongo.database import Database

from ingest.recording import back_fill
from ingest.rules.roles import Role
from ingest.storage.people import lost_contacts
from ingest.storage.people.lost_contacts import KEPT_SECONDS
from scripts.processes.waiting import eventually
from tests.services.ingest.api.conftest import MAC, Api
from tests.services.ingest.people import Office, Person

PATH = "/api/v1/staff/{}/lost_contact"


def say(api: Api, staff_id: object, state: str, timestamp: int) -> Any:
    body = {"state": state, "timestamp": timestamp}
    return api.client.put(PATH.format(staff_id), json=body)


def states(api: Api) -> dict[object, str | None]:
    """Return what is told of each."""
    rows = api.get("/staff")["data"]
    assert all(row["lost_contact"] is None or row["lost_contact"]["by"] for row in rows)
    return {row["staff_id"]: (row["lost_contact"] or {}).get("state") for row in rows}


def test_it_is_told_until_they_are_heard_again(api: Api, database: Database[Any]) -> None:
    anna, ben = api.hear(7, ago=3000), api.hear("ben", ago=2000)
    assert states(api) == {7: None, "ben": None}
    etag = api.client.get("/api/v1/staff").headers["ETag"]
    answer = say(api, 7, "acknowledged", anna)
    assert answer.status_code == 200
    assert abs(answer.get_json()["at"] - time.time()) < 60
    assert answer.get_json()["by"] == "somebody at 127.0.0.1"  # nobody has a name here
    assert api.client.get("/api/v1/staff").headers["ETag"] != etag
    assert say(api, "ben", "gone_home", ben).status_code == 200
    assert states(api) == {7: "acknowledged", "ben": "gone_home"}
    assert [row["lost_contact"] for row in api.get("/staff", level="1")["data"]] == []
    assert say(api, 7, "gone_home", anna).status_code == 200  # in the place of what was said
    assert states(api) == {7: "gone_home", "ben": "gone_home"}
    again = api.hear(7, ago=1000)
    assert states(api) == {7: None, "ben": "gone_home"}
    assert say(api, 7, "gone_home", anna).status_code == 409  # who says so has not seen it
    assert say(api, 7, "acknowledged", again).status_code == 200
    assert states(api) == {7: "acknowledged", "ben": "gone_home"}
    assert database["lost_contacts"].count_documents({}) == 2
    old = {"at": int(time.time()) - KEPT_SECONDS - 60}
    database["lost_contacts"].update_one({"_id": "ben"}, {"$set": old})
    say(api, 7, "acknowledged", again)
    assert states(api) == {7: "acknowledged", "ben": None}


@pytest.mark.parametrize(
    ("staff_id", "body", "status"),
    [
        (8, {"state": "gone_home", "timestamp": 0}, 404),
        (7, {"state": "dead", "timestamp": 0}, 400),
        (7, {"state": "gone_home"}, 400),
        (7, {"state": ["gone_home"], "timestamp": -1}, 400),
        ("a b", {"state": "gone_home", "timestamp": 0}, 400),
        (7, {"state": "gone_home", "timestamp": 253_402_300_799}, 409),
    ],
)
def test_what_cannot_be_is_not_stored(
    api: Api, database: Database[Any], staff_id: object, body: Any, status: int
) -> None:
    api.hear(7, ago=3000)
    assert api.client.put(PATH.format(staff_id), json=body).status_code == status
    assert database["lost_contacts"].count_documents({}) == 0


def test_who_is_deleted_loses_it_too(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_fill, "SWEEP_REST_SECONDS", 0)
    for staff_id in (7, "stays"):
        say(api, staff_id, "gone_home", api.hear(staff_id, ago=3000))
    api.context.people.notes.bring_up()
    database["staff"].delete_many({"staff_id": 7})
    api.context.recording.back_fill.sweep()
    assert [row["_id"] for row in database["lost_contacts"].find()] == ["stays"]


def test_all_services_tell_who_said_it_and_a_reader_may_not(
    waymark: Office, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = waymark.service(), waymark.service()
    waymark.person("anna", Role.ADMIN)
    waymark.person("ben", Role.READ)
    anna, ben = Person(one), Person(other)
    anna.log_in("anna")
    ben.log_in("ben")
    context = waymark.made[0]
    now = int(time.time())
    database["staff"].insert_one(
        {"staff_id": 7, "mac": MAC, "rssi": -60, "level": "4", "location": "Lobby B"}
        | {"timestamp": now - 3000, "received_at": now - 3000}
    )
    context.recording.back_fill.fill()
    eventually(lambda: context.people.notes.bring_up(), 30)

    def seen() -> Any:
        (row,) = ben.open("GET", "/staff").get_json()["data"]
        return row["lost_contact"]

    assert seen() is None
    body = {"state": "acknowledged", "timestamp": now - 3000}
    assert ben.open("PUT", "/staff/7/lost_contact", json=body).status_code == 403
    assert anna.open("PUT", "/staff/7/lost_contact", json=body).status_code == 200
    eventually(lambda: seen() is not None, 30)
    assert (seen()["state"], seen()["by"]) == ("acknowledged", "anna")
    entry = database["audit"].find_one({}, sort=[("_id", -1)])
    assert entry
    assert [entry[name] for name in ("who", "kind", "what", "of", "details")] == [
        *("anna", "person", "lost contact", "7"),
        body,
    ]
    # While it cannot be read, what was known is told.
    monkeypatch.setattr(lost_contacts, "READ_SECONDS", 0)
    monkeypatch.setattr(lost_contacts, "CHECK_SECONDS", 0)
    assert (seen()["state"], seen()["by"]) == ("acknowledged", "anna")
