"""The format of a block: all comes back but half of each id, in a few bytes, or it is damaged."""

import datetime
import random
from array import array
from collections.abc import Callable
from typing import Any

import bson
import pytest
from bson import ObjectId
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.rules.request_parameters import EARLIEST, FIRST_MILLISECONDS, RSSI_DBM
from ingest.storage.detections.documents import Document
from ingest.storage.sealed import blocks
from ingest.storage.sealed.blocks import (
    MAX_DETECTIONS,
    Block,
    DamagedBlock,
    SealedDetection,
    of_row,
    sealed,
)

TIME = 1_790_000_000
WAS = {"level": "4", "location": "Lobby", "correction": "c1"}


def row(timestamp: int, **fields: Any) -> Document:
    received_at = datetime.datetime.fromtimestamp(fields.pop("received", timestamp), datetime.UTC)
    name = fields.pop("name", random.randbytes(8))
    usual = {"level": "4", "location": "Lobby B", "rssi": -67, "mac": "C2A628384B08"}
    return {
        "_id": ObjectId(fields.pop("id_time", timestamp).to_bytes(4, "big") + name),
        "staff_id": 7,
        "timestamp": timestamp,
        "received_at": received_at,
        **usual,
        **fields,
    }


SECONDS = st.integers(EARLIEST, FIRST_MILLISECONDS - 1)
ROWS = st.builds(
    row,
    SECONDS,
    received=SECONDS,
    id_time=st.integers(0, 2**32 - 1),
    name=st.binary(min_size=8, max_size=8),
    level=st.text(max_size=3),
    location=st.text(max_size=3),
    mac=st.sampled_from(["C2A628384B08", "eddystone-eid:0102030405060708"]),
    rssi=st.integers(*RSSI_DBM).map(lambda dbm: dbm or None),  # 0 is not known
)
OTHERS = st.fixed_dictionaries({}, optional={"heard": SECONDS, "was": st.just(WAS)})


@settings(max_examples=300)
@given(rows=st.lists(st.builds(dict.__or__, ROWS, OTHERS), min_size=1, max_size=20))
def test_what_was_sealed_is_opened_as_it_was(rows: list[Document]) -> None:
    rows.sort(key=lambda row: (row["timestamp"], row["_id"]))
    block = bson.decode(bson.encode(sealed(7, list(map(of_row, rows)))))
    assert [block["first"], block["last"]] == [rows[0]["timestamp"], rows[-1]["timestamp"]]
    assert block["count"] == len(rows)
    for detection, stored in zip(Block(block).detections(), rows, strict=True):
        assert detection.id == of_row(stored).id
        name = stored["_id"].binary.hex()
        assert detection.id.startswith(name[:8] + name[-4:])
        for name in ("mac", "level", "location", "timestamp", "rssi"):
            assert getattr(detection, name) == stored[name]
        received_at = stored["received_at"].replace(tzinfo=datetime.UTC)
        assert detection.received_at == int(received_at.timestamp())
        assert (detection.heard, detection.was) == (stored.get("heard"), stored.get("was"))


def walk(count: int) -> list[SealedDetection]:
    """Return what a phone sends that hears a beacon each 4 s: its strength is noise."""
    chance = random.Random(1)
    rows, at, room = [], TIME, 0
    for _ in range(count):
        at += 4 if chance.random() < 0.9 else chance.randrange(3, 9)
        room = chance.randrange(14) if chance.random() < 0.03 else room
        received, rssi = at + chance.random() * 1.5, round(chance.gauss(-67, 6))
        place = {"mac": f"C2A628384B{room:02X}", "location": f"Room {room}", "rssi": rssi}
        rows.append(of_row(row(at, received=received, **place)))
    return rows


@pytest.mark.parametrize(("count", "most"), [(512, 5.6), (MAX_DETECTIONS, 4.0)])
def test_a_detection_takes_a_few_bytes(count: int, most: float) -> None:
    assert len(bson.encode(sealed(7, walk(count)))) / count < most


@pytest.mark.parametrize("count", [0, MAX_DETECTIONS + 1])
def test_a_block_has_a_bound(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} detections"):
        sealed(7, [of_row(row(TIME))] * count)


def other_byte(field: str) -> Callable[[Document], object]:
    def change(block: Document) -> None:
        middle = len(block[field]) // 2
        flipped = bytes([block[field][middle] ^ 1])
        block[field] = block[field][:middle] + flipped + block[field][middle + 1 :]

    return change


@pytest.mark.parametrize(
    "damage",
    [
        other_byte("columns"),
        other_byte("names"),
        lambda block: block["places"][0].update(level="5"),
        lambda block: block["places"].pop(),
        lambda block: block.update(count=block["count"] - 1),
        lambda block: block.update(count=block["count"] + 1),
        lambda block: block.update(format=2),
        lambda block: block.pop("format"),
        lambda block: block.pop("columns"),
        lambda block: block.pop("first"),
        lambda block: block.update(names=None),
        lambda block: block.update(heard={"1": TIME}),
        lambda block: block.update(first=block["first"] + 1),
        lambda block: block.update(last=block["last"] + 1),
    ],
)
def test_damage_is_told(damage: Callable[[Document], object]) -> None:
    block = sealed(7, walk(100))
    damage(block)
    with pytest.raises(DamagedBlock):
        Block(block)


def test_the_columns_have_the_widths_of_the_format() -> None:
    assert [array(kind).itemsize for kind in blocks._TYPES] == [8, 8, 8, 1, 2]
