"""POST /detections: what is stored, what is refused, and what the phone is told."""

import contextlib
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymongo.database import Database
from werkzeug.test import TestResponse

from common.routes import BATCH_BODY_BYTES
from ingest.api.detections.detection_input import MAX_ITEMS
from ingest.errors import ParameterError
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.recording.recorder import Recorder
from ingest.rules.request_parameters import EARLIEST
from ingest.rules.strict_json import strict_json
from ingest.web.request_body import may_become_large
from tests.services.ingest.api.conftest import MAC, Api

GOOD = {"staff_id": 1, "mac": MAC, "rssi": -67}


def post(api: Api, body: Any, query: str = "", **more: Any) -> TestResponse:
    return api.client.post(f"/api/v1/detections{query}", json=body, **more)


def results(answer: TestResponse, status: int = 200) -> list[dict[str, Any]]:
    assert answer.status_code == status, answer.text
    assert answer.json is not None
    rows: list[dict[str, Any]] = answer.json["results"]
    return rows


def test_one_detection(api: Api, database: Database[Any]) -> None:
    timestamp = int(time.time()) - 5
    answer = post(api, GOOD | {"timestamp": timestamp, "event_id": "e1"})
    expected = {"index": 0, "status": "stored", "mac": MAC, "level": "4", "location": "Lobby B"}
    (result,) = results(answer)
    assert result == expected | {
        "known": True,
        "skew_seconds": result["skew_seconds"],
        "errors": [],
    }
    assert 5 <= result["skew_seconds"] <= 7
    (stored,) = database["staff"].find()
    assert (stored["staff_id"], stored["timestamp"], stored["rssi"]) == (1, timestamp, -67)
    again = results(post(api, GOOD | {"timestamp": timestamp, "event_id": "e1"}))
    assert again[0]["status"] == "duplicate"
    assert database["staff"].count_documents({}) == 1


def batch(item: dict[str, Any], sent_at: object) -> dict[str, Any]:
    return {"detections": [item], "sent_at": sent_at}


def single(item: dict[str, Any], sent_at: object) -> dict[str, Any]:
    return item | {"sent_at": sent_at}


@pytest.mark.parametrize("body", [batch, single])
@pytest.mark.parametrize("more", [{}, {"unknown": 1}])
@pytest.mark.parametrize(("offset", "clock"), [(0, "right"), (-7200, "behind"), (7200, "ahead")])
def test_the_time_of_sending_tells_a_wrong_clock_from_a_backlog(
    api: Api,
    more: dict[str, Any],
    offset: int,
    clock: str,
    body: Callable[[dict[str, Any], object], dict[str, Any]],
) -> None:
    """Also in what is read with care; a clock may say any time, and what was heard is stored."""
    sent_at = int(time.time()) + offset
    item = GOOD | {"timestamp": sent_at - 3600} | more  # a backlog of an hour, by that clock
    for given_time in (sent_at, str(sent_at), sent_at + 0.5):
        answer = post(api, body(item, given_time))
        (result,) = results(answer)
        assert (result["status"], result.get("ignored", [])) == ("stored", list(more))
        assert answer.json is not None
        assert answer.json["clock"] == clock
        assert -offset <= answer.json["clock_skew_seconds"] < 30 - offset
    for nothing in (None, ""):
        assert "clock" not in post(api, body(item, nothing)).text
    if more:
        refused = post(api, body(item, "noon"))
        assert (refused.status_code, '"field":"sent_at"' in refused.text) == (400, True)


@pytest.mark.parametrize("name", ["timestamp", "event_id", "sent_at"])
@pytest.mark.parametrize("body", [batch, single])
def test_a_slip_in_a_field_that_nobody_needs_is_ignored_and_told(
    api: Api, name: str, body: Callable[[dict[str, Any], object], dict[str, Any]]
) -> None:
    for slip in (name.upper(), f"{name}s", name[:-2] + name[:-3:-1]):
        sent = body(GOOD | {name: "", "battery": 3, slip: 7}, "")
        if body is batch and name == "sent_at":
            sent = {"detections": [GOOD], "battery": 3, slip: 7}
        answer = post(api, sent)
        (result,) = results(answer)
        assert result["status"] == "stored"
        assert answer.json is not None
        answered = answer.json if body is batch and name == "sent_at" else result
        assert answered["did_you_mean"] == {slip: name}
    if body is single:
        bad = post(api, body(GOOD | {"rssi": "loud", slip: 7}, ""))
        assert (bad.status_code, f"did you mean {name}?" in bad.text) == (400, True)


def test_the_legacy_endpoint_knows_the_same_event(api: Api) -> None:
    timestamp = api.hear(1, event_id="e1")
    again = post(api, GOOD | {"timestamp": timestamp, "event_id": "e1"})
    assert results(again)[0]["status"] == "duplicate"


def test_each_item_has_its_own_fate(api: Api, database: Database[Any]) -> None:
    items = [
        GOOD | {"event_id": "a"},
        GOOD | {"rssi": "loud", "mac": None},
        GOOD | {"event_id": "a"},
        7,
        GOOD | {"mac": "ff-ff-ff-ff-ff-fe", "batery": 3},
        GOOD,
        GOOD,
    ]
    answer = post(api, {"detections": items})
    rows = results(answer)
    statuses = ["stored", "rejected", "duplicate", "rejected", "stored", "stored", "stored"]
    assert [row["status"] for row in rows] == statuses
    assert [row["index"] for row in rows] == list(range(7))
    assert [error["field"] for error in rows[1]["errors"]] == ["mac", "rssi"]
    assert rows[3]["errors"] == [{"field": "item", "reason": "must be a JSON object"}]
    assert (rows[4]["level"], rows[4]["known"]) == ("unknown", False)
    assert (rows[4]["ignored"], "did_you_mean" in rows[4]) == (["batery"], False)
    assert rows[5]["skew_seconds"] is None
    assert answer.json is not None
    assert answer.json["counts"] == {"stored": 4, "duplicate": 1, "queued": 0, "rejected": 2}
    assert database["staff"].count_documents({}) == 4


def test_the_gateways_retry_stores_nothing_twice(api: Api, database: Database[Any]) -> None:
    headers = {"X-Request-ID": "r1", "X-Request-Start": f"{time.time():.3f}"}
    items = {"detections": [GOOD, GOOD, GOOD]}
    assert {result["status"] for result in results(post(api, items, headers=headers))} == {"stored"}
    assert {result["status"] for result in results(post(api, items, headers=headers))} == {
        "duplicate"
    }
    assert database["staff"].count_documents({}) == 3


@pytest.mark.parametrize(
    "given_time",
    [1_700_000_010, 1_700_000_010_500, "1700000010", "2023-11-14T22:13:30.5Z", 1.70000001e9],
)
def test_times_in_every_form(api: Api, database: Database[Any], given_time: object) -> None:
    assert results(post(api, GOOD | {"timestamp": given_time}))[0]["skew_seconds"] > 90_000_000
    assert database["staff"].find_one({}, {"_id": 0, "timestamp": 1}) == {
        "timestamp": 1_700_000_010
    }


@pytest.mark.parametrize(
    "given_time",
    [EARLIEST - 1, 0, -1, "soon", True, [], 10**18, 1e300, "2023-11-14", "2023-13-01T00:00Z"],
)
def test_times_that_cannot_be(strict: Api, database: Database[Any], given_time: object) -> None:
    before = database["staff"].count_documents({})
    answer = post(strict, GOOD | {"timestamp": given_time})
    assert answer.status_code == 400
    assert answer.json is not None
    assert [error["field"] for error in answer.json["errors"]] == ["timestamp"]
    assert database["staff"].count_documents({}) == before


def test_the_future_ends_after_a_day(api: Api) -> None:
    now = int(time.time())
    items = [GOOD | {"timestamp": now + 86_000}, GOOD | {"timestamp": now + 86_500}]
    rows = results(post(api, {"detections": items}))
    assert [row["status"] for row in rows] == ["stored", "rejected"]
    assert -86_001 <= rows[0]["skew_seconds"] <= -85_990


def test_a_slip_in_a_field_is_named_and_guessed(api: Api) -> None:
    slip = {"Staff_ID": 7, "mac": GOOD["mac"], "rsi": -60, "\ud800": 1}
    reasons = {"Staff_ID": "did you mean staff_id?", "rsi": "did you mean rssi?", "?": "there are"}
    batch = post(api, {"detections": [slip]})
    single = post(api, slip)
    assert single.json is not None
    assert single.status_code == 400
    for errors in (results(batch)[0]["errors"], single.json["errors"]):
        reasons_by_field = {error["field"]: error["reason"] for error in errors}
        assert reasons_by_field.keys() == {"staff_id", "rssi", *reasons}
        assert all(said in reasons_by_field[name] for name, said in reasons.items())
    assert "did you mean detections?" in post(api, {"detection": [GOOD]}).text
    place = {"level": "4", "locatoin": "Lobby"}
    assert (
        "did you mean location?"
        in api.client.put(f"/api/v1/beacons/{GOOD['mac']}", json=place).text
    )


def test_a_dry_run_tells_and_stores_nothing(api: Api, database: Database[Any]) -> None:
    post(api, GOOD | {"event_id": "a"})
    items = [GOOD | {"event_id": "a"}, GOOD | {"event_id": "b"}, GOOD | {"event_id": "b"}, {}]
    answer = post(api, {"detections": items}, "?dry_run=1")
    assert answer.json is not None
    assert answer.json["dry_run"] is True
    statuses = ["duplicate", "would store", "duplicate", "rejected"]
    assert [result["status"] for result in results(answer)] == statuses
    assert database["staff"].count_documents({}) == 1


@pytest.mark.parametrize("count", [0, MAX_ITEMS, MAX_ITEMS + 1])
def test_how_many_at_once(api: Api, count: int) -> None:
    item = GOOD | {
        "event_id": "8f14e45f-ceea-467f-a0e6-000000000000",
        "timestamp": "2026-11-21T10:00:00+08:00",
    }
    answer = post(api, {"detections": [item] * count}, "?dry_run=1")
    if count <= MAX_ITEMS:
        assert len(results(answer)) == count
    else:
        assert (answer.status_code, answer.json and answer.json["code"]) == (413, "too_large")
        assert "1000" in answer.text


GOOD_TEXT = json.dumps(GOOD)
BATCH_TEXT = json.dumps({"detections": [GOOD, GOOD]})
JSON = "application/json"


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        ("", JSON, 400, "JSON"),
        ("[]", JSON, 400, "object"),
        (f"[{GOOD_TEXT}]", JSON, 400, "object"),
        ('{"detections": {}}', JSON, 400, "list"),
        (GOOD_TEXT[:-1], JSON, 400, "JSON"),
        (GOOD_TEXT[:-1] + ', "rssi": -1}', JSON, 400, "'rssi' twice"),
        (GOOD_TEXT[:-1] + ', "rs\\u0073i": -1}', JSON, 400, "'rssi' twice"),
        (BATCH_TEXT.replace('"rssi"', '"mac" :"", "rssi"'), JSON, 400, "'mac' twice"),
        (
            BATCH_TEXT.replace('"rssi"', '"event_id":"a", "event_id":null, "rssi"'),
            JSON,
            400,
            "twice",
        ),
        (BATCH_TEXT[:-1] + ',"detections":[]}', JSON, 400, "'detections' twice"),
        (GOOD_TEXT.replace("-67", "NaN"), JSON, 400, "NaN"),
        (GOOD_TEXT.replace("-67", "-Infinity"), JSON, 400, "Infinity"),
        (GOOD_TEXT.replace("-67", "1" * 5000), JSON, 400, "too long"),
        (GOOD_TEXT.replace("-67", "1e999"), JSON, 400, "rssi"),
        ("[" * 60_000, JSON, 400, "deep"),
        ('{"a":' * 60_000, JSON, 400, "deep"),
        (GOOD_TEXT.encode("utf-16"), JSON, 400, "UTF-8"),
        (b'{"a": "\xff"}', JSON, 400, "UTF-8"),
        (GOOD_TEXT, "application/json; charset=utf-16", 415, "UTF-8"),
        (GOOD_TEXT, "text/plain", 415, "application/json"),
        (GOOD_TEXT, "application/x-www-form-urlencoded", 415, "application/json"),
        (" " * BATCH_BODY_BYTES + GOOD_TEXT, JSON, 413, str(BATCH_BODY_BYTES)),
    ],
)
@pytest.mark.usefixtures("no_collection")
def test_bad_bodies_are_refused(strict: Api, body: Any, kind: str, status: int, said: str) -> None:
    answer = strict.client.post("/api/v1/detections", data=body, content_type=kind)
    assert answer.status_code == status
    assert answer.json is not None
    assert said in answer.json["detail"]


PACKED = gzip.compress(BATCH_TEXT.encode(), mtime=0)


@pytest.mark.parametrize(
    ("encoding", "body", "status", "said"),
    [
        ("gzip", PACKED, 200, "stored"),
        ("GZIP", PACKED, 200, "stored"),
        ("gzip", BATCH_TEXT.encode(), 400, "is not gzip"),
        ("gzip", b"", 400, "whole gzip"),
        ("gzip", PACKED[:-1], 400, "whole gzip"),
        ("gzip", PACKED[:-6] + bytes(6), 400, "is not gzip"),  # its checksum
        ("gzip", PACKED * 2, 400, "whole gzip"),
        ("gzip", gzip.compress(b"[" * BATCH_BODY_BYTES), 400, "nested"),
        ("gzip", gzip.compress(b" " * (BATCH_BODY_BYTES + 1)), 413, str(BATCH_BODY_BYTES)),
        ("br", PACKED, 415, "gzip or none"),
        ("gzip, gzip", PACKED, 415, "gzip or none"),
    ],
    ids=range(11),
)
def test_a_compressed_body_has_the_same_limits(
    api: Api, encoding: str, body: bytes, status: int, said: str
) -> None:
    headers = {"Content-Encoding": encoding}
    answer = api.client.post("/api/v1/detections", data=body, content_type=JSON, headers=headers)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text


def test_of_a_bomb_no_more_is_made_than_the_limit(api: Api) -> None:
    part = zlib.compressobj(wbits=31)
    bomb = b"".join(part.compress(bytes(1 << 20)) for _ in range(32)) + part.flush()
    assert len(bomb) < BATCH_BODY_BYTES
    tracemalloc.start()
    answer = api.client.post(
        "/api/v1/detections", data=bomb, content_type=JSON, headers={"Content-Encoding": "gzip"}
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer.status_code == 413
    assert may_become_large({b"content-encoding": b"gzip"}, len(bomb))  # two at a time in a lane
    assert peak < 8 * BATCH_BODY_BYTES


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
)
FIELDS = {
    "staff_id": st.sampled_from([1, "7", "SDA-001"]) | ANYTHING,
    "mac": st.just(MAC) | ANYTHING,
    "rssi": st.integers(-140, 30) | ANYTHING,
    "timestamp": st.integers(EARLIEST, EARLIEST * 2) | st.datetimes().map(str) | ANYTHING,
    "event_id": st.text(max_size=5) | ANYTHING,
}
ITEMS = st.fixed_dictionaries({}, optional=FIELDS) | ANYTHING


@pytest.mark.long
@settings(max_examples=150)
@given(items=st.lists(ITEMS, max_size=6))
def test_whatever_comes_each_item_is_stored_or_told_why(
    api: Api, database: Database[Any], items: list[Any]
) -> None:
    database["staff"].delete_many({})
    answer = post(api, {"detections": items})
    if answer.status_code != 200:  # a text that Python's JSON writes but no UTF-8 can hold
        assert answer.status_code == 400
        return
    rows = results(answer)
    assert [row["index"] for row in rows] == list(range(len(items)))
    assert all(bool(row["errors"]) == (row["status"] == "rejected") for row in rows)
    stored = [row for row in rows if row["status"] == "stored"]
    assert database["staff"].count_documents({}) == len(stored)


USUAL = st.fixed_dictionaries(
    {
        "staff_id": st.integers(-1, 2**70) | st.text("aZ0._- ", max_size=66),
        "mac": st.sampled_from([MAC, MAC.lower(), "c2:a6:28:38:4b:08", "C2"]),
        "rssi": st.integers(-129, 22),
    },
    optional={
        "timestamp": st.none() | st.integers(EARLIEST - 1, EARLIEST * 2) | st.floats(0, 2e12),
        "event_id": st.none() | st.text("a \x7fé", max_size=130),
    },
)


@pytest.mark.long
@settings(max_examples=150)
@given(items=st.lists(USUAL, min_size=1, max_size=4))
def test_the_short_way_reads_what_the_long_way_reads(api: Api, items: list[Any]) -> None:
    usual = json.dumps({"detections": items}, ensure_ascii=False)
    odd = usual.replace('"detections"', r'"\u0064etections"')  # says the same
    stamp = {"X-Request-ID": "r", "X-Request-Start": str(int(time.time()))}
    answers = [
        api.client.post(
            "/api/v1/detections?dry_run=1", data=body, content_type=JSON, headers=stamp
        ).json
        for body in (usual, odd)
    ]
    assert answers[0] == answers[1]


@pytest.mark.long
@settings(max_examples=300)
@given(body=st.binary(max_size=60) | ANYTHING.map(lambda value: json.dumps(value).encode()))
def test_no_body_breaks_the_reader(body: bytes) -> None:
    with contextlib.suppress(ParameterError):
        value = strict_json(body)
        assert value == json.loads(body)


def test_a_batch_stored_in_part_is_answered_item_by_item(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(_: Recorder, documents: list[Any]) -> list[Outcome]:
        outcomes = [Outcome.STORED, Outcome.UNAVAILABLE, Outcome.REJECTED]
        raise PartlyStored(outcomes[: len(documents)])

    monkeypatch.setattr(Recorder, "record", record)
    items = [{"staff_id": n, "mac": MAC, "rssi": -20} for n in range(3)]
    answer = api.client.post("/api/v1/detections", json={"detections": [*items, {}]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.json is not None
    statuses = [result["status"] for result in answer.json["results"]]
    assert statuses == ["stored", "unavailable", "rejected", "rejected"]
