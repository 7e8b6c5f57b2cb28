"""/staff and /now tell where somebody is by `rules/where.py`, whatever the order of arrival."""

import random
import time
from typing import Any

import pytest

from ingest.rules.where import RECENT
from tests.services.ingest.api.conftest import MAC, Api

ROOMS = [f"C2A62804000{n}" for n in range(2, 7)]  # on level 4, as Lobby B
WATCH = "AABBCC000001"


@pytest.fixture(autouse=True)
def rooms(api: Api) -> None:
    rows = "".join(f"{mac},4,Room {n},,\n" for n, mac in enumerate(ROOMS))
    answer = api.client.post(
        "/api/v1/beacons/import", data=f"mac,level,location,x,y\n{rows}", content_type="text/csv"
    )
    assert answer.status_code == 200, answer.text


def send(api: Api, items: list[dict[str, Any]]) -> None:
    answer = api.client.post("/api/v1/detections", json={"detections": items})
    assert answer.json is not None
    assert answer.json["counts"]["stored"] == len(items)


def heard(mac: str, rssi: int | None, timestamp: int) -> dict[str, Any]:
    return {"staff_id": 7, "mac": mac, "rssi": rssi, "timestamp": timestamp}


def shown(api: Api) -> str:
    (one,) = api.get("/staff")["data"]
    (level,) = api.get("/now")["levels"]
    assert [(level["level"], there["mac"]) for there in level["staff"]] == [
        (one["level"], one["mac"])
    ]
    mac: str = one["mac"]
    return mac


@pytest.mark.parametrize("seed", range(3))
def test_of_what_was_heard_in_one_second_the_strongest_is_shown(api: Api, seed: int) -> None:
    now = int(time.time())
    strengths = [-45, -60, -75, -85, -94]
    batch = [heard(mac, rssi, now - 5) for mac, rssi in zip(ROOMS, strengths, strict=True)]
    random.Random(seed).shuffle(batch)
    send(api, batch)
    assert shown(api) == ROOMS[0]
    send(api, [heard(MAC, -94, now - 4)])
    assert shown(api) == ROOMS[0]
    send(api, [heard(MAC, -40, now - 2), heard(MAC, -40, now - 1)])
    assert shown(api) == MAC


def test_what_is_not_ours_replaces_no_place_that_was_just_heard(api: Api) -> None:
    now = int(time.time())
    send(api, [heard(MAC, -60, now - 30)])
    send(api, [heard(f"AABBCC0001{n:02}", -80, now - 28 + n) for n in range(3)])
    assert shown(api) == MAC
    send(api, [heard(WATCH, -45, now - 20)])
    assert shown(api) == MAC
    send(api, [heard(WATCH, -45, now)])  # nothing of ours for half a minute
    assert shown(api) == WATCH


def test_a_clock_ahead_holds_nobody_at_a_place(api: Api) -> None:
    now = int(time.time())
    for n in range(RECENT):
        send(api, [heard(ROOMS[0], -70, now + 43_200 + n)])
    time.sleep(1.1)  # to be surely of another second
    send(api, [heard(ROOMS[1], -50, int(time.time()))])  # and the right clock reports on
    assert shown(api) == ROOMS[1]


HOUR = 3600
LEAST_OFF = 61


@pytest.mark.parametrize("sent_as", ["one", "batch"])
@pytest.mark.parametrize(
    ("behind", "heard_before", "sent_before", "skew", "age"),
    [
        (0, 0, 0, None, 0),
        (0, HOUR, 0, None, HOUR),  # a backlog
        (3 * HOUR, 0, 0, 3 * HOUR, 0),
        (3 * HOUR, HOUR, 0, 3 * HOUR, HOUR),  # a backlog of a wrong clock
        (-12 * HOUR, HOUR, 0, -12 * HOUR, HOUR),
        (400 * 24 * HOUR, 0, 0, 400 * 24 * HOUR, 0),
        (LEAST_OFF, 0, 0, LEAST_OFF, 0),
        (3 * HOUR, 0, None, None, 3 * HOUR),  # nobody knows
        (-12 * HOUR, 0, None, -12 * HOUR, 0),  # nobody has heard it yet
        (0, 0, 2 * HOUR, None, 0),  # heard after it was sent: `sent_at` is not true
        (0, 0, -900 * 24 * HOUR, None, 0),
    ],
)
def test_a_wrong_clock_is_told_and_a_backlog_is_none(
    api: Api,
    behind: int,
    heard_before: int,
    sent_before: int | None,
    skew: int | None,
    age: int,
    sent_as: str,
) -> None:
    """`sent_before`: how long before now `sent_at` is, by the phone's clock; None without one."""
    clock = int(time.time()) - behind
    item = heard(ROOMS[1], -50, clock - heard_before)
    body = item if sent_as == "one" else {"detections": [item]}
    sent = {} if sent_before is None else {"sent_at": clock - sent_before}
    answer = api.client.post("/api/v1/detections", json=body | sent)
    assert answer.json is not None
    assert answer.json["counts"]["stored"] == 1
    for _ in range(2):  # before it is noted, and then
        (one,) = api.get("/staff")["data"]
        assert one["timestamp"] == clock - heard_before
        assert one["age_seconds"] == pytest.approx(age, abs=30)
        assert one.get("clock_skew_seconds") == (skew and pytest.approx(skew, abs=30))
        api.context.people.notes.bring_up()


def test_whose_clock_falls_behind_moves_on(api: Api) -> None:
    now = int(time.time())
    send(api, [heard(ROOMS[0], -50, now - 30)])
    api.context.people.notes.bring_up()
    items = [heard(ROOMS[1], -50, now - 3 * HOUR), {"staff_id": 8, "mac": MAC, "rssi": -50}]
    sent = {"detections": items, "sent_at": now - 3 * HOUR}
    assert api.client.post("/api/v1/detections", json=sent).status_code == 200
    for _ in range(2):
        moved, timeless = api.get("/staff")["data"]
        assert (moved["mac"], moved["freshness"]) == (ROOMS[1], "now")
        assert "clock_skew_seconds" not in timeless  # our clock gave it its time
        api.context.people.notes.bring_up()


def test_a_clock_ahead_covers_no_place_before_somebody_comes(api: Api) -> None:
    now = int(time.time())
    send(api, [heard(MAC, -50, now + 43_200), heard(ROOMS[0], -50, now + 43_200)])
    time.sleep(1.1)
    api.hear(8)
    by_mac = {mac: row for row in api.get("/coverage")["data"] for mac in row["macs"]}
    assert (by_mac[MAC]["staff_id"], by_mac[ROOMS[0]]["staff_id"]) == (8, 7)
    assert now < by_mac[MAC]["last_visited"] <= time.time()
    assert now <= by_mac[ROOMS[0]]["last_visited"] <= by_mac[MAC]["last_visited"]


@pytest.mark.parametrize(
    ("behind", "heard_before", "last"),
    [
        (3 * HOUR, 0, 7),
        (400 * 24 * HOUR, 0, 7),
        (LEAST_OFF, 0, 7),
        (3 * HOUR, 30, 7),
        (3 * HOUR, 90, 8),  # of a backlog: the right clock heard it later
        (-3 * HOUR, 30, 7),
        (-3 * HOUR, 90, 8),
    ],
)
def test_who_was_last_at_a_place_is_told_by_our_clock(
    api: Api, behind: int, heard_before: int, last: int
) -> None:
    now = int(time.time())
    clock = now - behind
    for place in (MAC, *ROOMS[:2]):  # all of a place, and none
        api.hear(8, place, ago=60)
    api.hear(9, ROOMS[0], ago=5)
    items = [heard(place, -50, clock - heard_before) for place in (MAC, ROOMS[0])]
    body = {"detections": items, "sent_at": clock}
    assert api.client.post("/api/v1/detections", json=body).status_code == 200
    by_mac = {mac: row for row in api.get("/coverage")["data"] for mac in row["macs"]}
    assert by_mac[MAC]["staff_id"] == last
    at = now - (heard_before if last == 7 else 60)
    assert by_mac[MAC]["last_visited"] == pytest.approx(at, abs=5)
    assert by_mac[ROOMS[1]]["staff_id"] == 8
    assert by_mac[ROOMS[0]]["staff_id"] == (9 if heard_before else 7)


def test_a_clock_ahead_is_seen_nowhere_at_a_time_to_come(api: Api) -> None:
    """Nor does it stand in the way of who was there."""
    now = int(time.time())
    send(api, [heard(mac, -50, now + 43_200) for mac in (MAC, WATCH)])
    place = {"level": "4", "location": "Lobby B", "from": now - 60, "to": now + 86_000}
    api.hear(8)
    visits = api.get("/visits", **place)["data"]
    assert {row["staff_id"] for row in visits} == {7, 8}
    assert all(now <= row["from"] == row["to"] <= time.time() for row in visits)
    (unknown,) = api.get("/beacons/unknown")["data"]
    assert unknown["first_heard"] <= unknown["last_heard"] <= time.time()
