"""That a batch in which a field stands twice is always found, and no other is refused."""

import json
from typing import Annotated

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.api.detection_input import StrictItem
from ingest.errors import ParameterError
from ingest.rules.strict_json import strict_json
from ingest.rules.unique_keys import unique_keys


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    detections: Annotated[list[StrictItem], msgspec.Meta(max_length=1000)]


TEXTS = st.sampled_from(["", "mac", '\\"', "\\u0041", "é", ":,{}[]", "AABBCCDDEEFF"])
VALUES = {
    "staff_id": st.integers(0, 9).map(str) | TEXTS.map(lambda text: f'"{text}"'),
    "mac": TEXTS.map(lambda text: f'"{text}"'),
    "rssi": st.integers(-127, 20).map(str),
    "timestamp": st.sampled_from(["null", "5", "5.5", '"mac"', "1e3"]),
    "event_id": st.sampled_from(["null", '"a"', '"event_id"']),
}
NAMES = {"rssi": '"rs\\u0073i"', "mac": '"m\\u0061c"'}


@st.composite
def fields(draw: st.DrawFn) -> str:
    """Return an object as text, with any field once, twice or, if optional, never."""
    names = draw(st.permutations(["staff_id", "mac", "rssi"]))
    names += draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2))
    spaces = draw(st.sampled_from(["", " ", "\n"]))
    parts = []
    for name in names:
        written = NAMES[name] if name in NAMES and draw(st.integers(0, 9)) == 0 else f'"{name}"'
        parts.append(f"{written}{spaces}:{draw(VALUES[name])}")
    return "{" + f",{spaces}".join(parts) + "}"


@settings(max_examples=200)
@given(items=st.lists(fields(), min_size=1, max_size=4), again=st.booleans())
def test_it_finds_what_json_finds(items: list[str], *, again: bool) -> None:
    batch = f'"detections":[{",".join(items)}]'
    body = ("{" + (f'"detections":[],{batch}' if again else batch) + "}").encode()
    value = msgspec.json.decode(body, type=Batch)
    try:
        strict_json(body)
        unique = True
    except ParameterError:
        unique = False
    # A text with escapes is never proven; it is read by JSON then.
    assert unique_keys(body, value) == (unique and b"\\" not in body)


@pytest.mark.parametrize("twice", ["staff_id", "mac", "rssi", "timestamp", "event_id"])
def test_each_field_twice_is_found(twice: str) -> None:
    item = {"staff_id": 1, "mac": "m", "rssi": -5, "timestamp": None, "event_id": None}
    text = json.dumps(item)
    once = f'{{"detections":[{text},{text}]}}'.encode()
    assert unique_keys(once, msgspec.json.decode(once, type=Batch))
    repeated = f'{text[:-1]},"{twice}":{json.dumps(item[twice])}}}'
    body = f'{{"detections":[{text},{repeated}]}}'.encode()
    assert not unique_keys(body, msgspec.json.decode(body, type=Batch))
