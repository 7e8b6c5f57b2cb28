"""The bytes that name a detection: they stand in databases, so they never change."""

import itertools

import pytest

from ingest.rules.detection_identity import detection_id, event_key


def test_a_timestamp_that_is_sent_is_part_of_the_key() -> None:
    assert event_key("a", None) == ("event:a", None)
    assert event_key("a", 5) == ("event:a", 5)


@pytest.mark.parametrize(
    ("key", "named"),
    [
        (("request:a", 1_700_000_000), "6553f1007cbddaf06f43d904"),
        (("request:a", 2**32 - 1), "ffffffff7cbddaf06f43d904"),
        (("event:a", 0), "00000000e883c5af68d2d12b"),
        (("event:a", None), "6da088b389b7b47c1595c9a0"),
    ],
)
def test_a_name_is_what_it_always_was(key: tuple[str, int | None], named: str) -> None:
    assert detection_id(7, "C2A628384B08", key).hex() == named


def test_whatever_differs_gives_another_name() -> None:
    staff: list[int | str] = [1, 11, "01"]
    macs = ("AA", "AB")
    keys = [("event:a", None), ("event:a", 1), ("event:a", 2), ("event:b", 1), ("request:a", 1)]
    names = [detection_id(who, mac, key) for who, mac, key in itertools.product(staff, macs, keys)]
    assert {len(name) for name in names} == {12}
    assert len(set(names)) == len(names)
