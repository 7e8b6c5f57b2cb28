"""What is refused before it is built: a body may be small and its values large."""

import sys
import tracemalloc
from typing import Any
from unittest.mock import patch

import pytest

from common import beacon_file
from common.beacon_file import MAX_BEACONS
from common.csv_file import MAX_ERRORS
from common.routes import BATCH_BODY_BYTES
from ingest.api.detections.detection_input import MAX_ITEMS
from ingest.api.http import bodies
from ingest.api.http.bodies import MAX_VALUES
from tests.services.ingest.api.conftest import MAC, Api

HEADER = "mac,level,location,x,y\n"
MIB = 1 << 20
LARGE = {
    "empty objects": b'{"detections":[' + b"{}," * 126_000 + b"{}]}",
    "empty lists": b'{"detections":[' + b"[]," * 126_000 + b"[]]}",
    "lists in lists": b'{"detections":[' + b"[[[[[]]]]]," * 33_000 + b"1]}",
    "fields": b"{" + b",".join(b'"%x":1' % number for number in range(37_000)) + b"}",
    "numbers": b'{"detections":[' + b"1.5," * 96_000 + b"1]}",
    "items": b'{"detections":['
    + b",".join([b'{"staff_id":1,"mac":"x","rssi":1}'] * 11_000)
    + b"]}",
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
def test_a_body_of_too_many_values_is_refused_before_they_are_built(
    strict: Api, body: bytes
) -> None:
    assert BATCH_BODY_BYTES * 0.8 < len(body) < BATCH_BODY_BYTES
    tracemalloc.start()
    try:
        answer = strict.client.post(
            "/api/v1/detections", data=body, content_type="application/json"
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.status_code, answer.json and answer.json["code"]) == (413, "too_large")
    assert str(MAX_VALUES) in answer.text
    assert peak < 3 * MIB  # the body and its copy


def test_the_largest_batch_has_values_to_spare(api: Api) -> None:
    more = {f"field{number}": number for number in range(5)}
    item = {"staff_id": 1, "mac": MAC, "rssi": -67, "event_id": "a", "timestamp": None} | more
    answer = api.client.post(
        "/api/v1/detections?dry_run=1", json={"detections": [item] * MAX_ITEMS}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("text", "values"),
    [('{"a":1}', 2), ("[1,[2,3],{}]", 6), ('{"a":[{"b":"]}"}]}', 4), ('{"a,":"\\",","b":[]}', 3)],
)
def test_the_bound_is_never_below_the_number_of_values(text: str, values: int) -> None:
    with patch.object(bodies, "MAX_VALUES", values - 2):
        assert bodies._has_too_many_values(text.encode())
    with patch.object(bodies, "MAX_VALUES", 2 * values):
        assert not bodies._has_too_many_values(text.encode())


def rows(count: int, row: str) -> str:
    return HEADER + "".join(row.format(number=number) + "\n" for number in range(count))


def load(api: Api, text: str, query: str = "") -> Any:
    return api.client.post(f"/api/v1/beacons/import{query}", data=text, content_type="text/csv")


@pytest.mark.parametrize(
    ("row", "most"), [("{number:012X},1,a,,", sys.maxsize), ("zz,1,a,,", MAX_ERRORS)]
)
def test_a_file_is_read_up_to_its_limit(api: Api, row: str, most: int) -> None:
    for lines, parsed in ((MAX_BEACONS + 1, min(MAX_BEACONS, most)), (10 * MAX_BEACONS, 0)):
        with patch.object(beacon_file, "_add", wraps=beacon_file._add) as parse:
            answer = load(api, rows(lines, row), "?dry_run=1")
        assert parse.call_count == parsed
        if parsed != most:
            assert answer.status_code == 413
            assert str(MAX_BEACONS) in answer.json["detail"]


def test_the_largest_file_is_loaded(api: Api) -> None:
    done = load(api, rows(MAX_BEACONS, "1{number:011X},1,a,,") + "\n\n")
    assert (done.status_code, done.json["added"]) == (200, MAX_BEACONS)


def test_of_many_bad_lines_the_first_are_named(api: Api) -> None:
    text = rows(500, "zz,,a,,")  # two errors a line
    tried = load(api, text, "?dry_run=1").json
    assert tried["bad_lines"] == MAX_ERRORS
    assert len(tried["errors"]) == MAX_ERRORS
    assert (tried["errors"][-1]["line"], tried["errors"][-1]["field"]) == (51, "level")
    refused = load(api, text)
    assert refused.status_code == 400
    assert "100 lines or more" in refused.json["detail"]
    assert refused.json["errors"] == tried["errors"]


def test_commas_in_strings_are_no_values(api: Api) -> None:
    commas = ",]}" * 40
    items = [{"staff_id": n, "mac": MAC, "rssi": "-20", "event_id": commas} for n in range(1000)]
    answer = api.client.post("/api/v1/detections?dry_run=1", json={"detections": items})
    assert answer.status_code == 200
    assert answer.json is not None
    assert answer.json["counts"]["stored"] == 1000
