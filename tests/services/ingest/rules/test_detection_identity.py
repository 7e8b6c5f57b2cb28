"""The bytes that name a detection: they stand in databases, so they never change."""

import itertools

import pytest

from ingest.rules.detection_identity import (
    REUSED_SECONDS,
    detection_id,
    event_key,
    is_reused,
    next_id,
)


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
    names = [
        detection_id(staff_id, mac, key)
        for staff_id, mac, key in itertools.product(staff, macs, keys)
    ]
    assert {len(name) for name in names} == {12}
    assert len(set(names)) == len(names)


def test_a_name_leads_to_one_other_for_ever() -> None:
    names = [bytes(12)]
    for _ in range(1000):
        names.append(next_id(names[-1]))
    assert len(set(names)) == len(names)
    assert names[1].hex() == "04e98d06a3ead2eab575113a"
    assert next_id(names[1]) == names[2]


@pytest.mark.parametrize(
    ("apart", "reused"),
    [(0, 0), (REUSED_SECONDS, 0), (REUSED_SECONDS + 1, 1), (10**9, 1)],
)
def test_a_name_is_good_for_twelve_hours_in_both_directions(apart: int, reused: int) -> None:
    assert REUSED_SECONDS == 12 * 3600
    assert is_reused(10**9, 10**9 + apart) is is_reused(10**9 + apart, 10**9) is bool(reused)
