"""Which shard holds which hashes as a cluster grows: the least moves, whatever was there before."""

from itertools import pairwise

import pytest

from mongo.zones import HIGHEST, LOWEST, ROUNDING, Zone, equal, moved

NAMES = [f"shard{number}" for number in range(1, 7)]
ROUNDED = ROUNDING / 2**62


def presplit(count: int) -> set[Zone]:
    """Return how `shardCollection` lays a new collection: at rounded numbers, in the shards' order.

    So did our own zones until a shard took its part from all others.
    """
    step = (2**63 - 1) // (2 * count) * 2
    inner = [(2 * number - count) * step for number in range(1, count)]
    bounds = pairwise([LOWEST, *inner, HIGHEST])
    return {Zone(name, low, high) for name, (low, high) in zip(NAMES, bounds, strict=False)}


def check(zones: set[Zone], shards: list[str]) -> None:
    """They leave no hash out, hold none twice, and give each shard as much."""
    ordered = sorted(zones, key=lambda zone: zone.low)
    assert (ordered[0].low, ordered[-1].high) == (LOWEST, HIGHEST)
    assert all(left.high == right.low for left, right in pairwise(ordered))
    for shard in shards:
        held = sum(zone.size for zone in zones if zone.shard == shard)
        assert held == pytest.approx((HIGHEST - LOWEST) / len(shards), abs=4 * ROUNDING)
    assert {zone.shard for zone in zones} == set(shards)
    assert min(zone.size for zone in zones) > 2**58  # no slivers


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_new_shard_gets_its_part_and_nothing_else_moves(first: int) -> None:
    zones = presplit(first)
    for count in range(first + 1, len(NAMES) + 1):
        grown = equal(NAMES[:count], zones, zones)
        check(grown, NAMES[:count])
        assert moved(zones, grown) == pytest.approx(1 / count, abs=ROUNDED)
        zones = grown


@pytest.mark.parametrize(("before", "after"), [(1, 4), (2, 4), (2, 5)])
def test_several_new_shards_at_once_move_no_more_than_their_parts(before: int, after: int) -> None:
    zones = presplit(before)
    grown = equal(NAMES[:after], zones, zones)
    check(grown, NAMES[:after])
    assert moved(zones, grown) == pytest.approx(1 - before / after, abs=ROUNDED)


@pytest.mark.parametrize("count", range(1, len(NAMES) + 1))
def test_what_is_as_it_should_be_stays(count: int) -> None:
    """A new cluster, and one that an older program laid out and whose data still move."""
    names = list(reversed(NAMES[:count]))
    assert equal(names, set(), presplit(count)) == presplit(count)
    assert equal(names, presplit(count), [Zone(NAMES[0], LOWEST, HIGHEST)]) == presplit(count)


def test_a_lost_zone_is_made_again_where_its_hashes_lie() -> None:
    for lost in presplit(3):
        assert equal(NAMES[:3], presplit(3) - {lost}, presplit(3)) == presplit(3)


def test_whoever_was_interrupted_comes_to_the_same_zones() -> None:
    before = presplit(3)
    wanted = equal(NAMES[:4], before, before)
    there = set(before)
    changes = [*sorted(before - wanted), *sorted(wanted - before)]
    assert len(changes) > 6
    for zone in changes:
        there ^= {zone}  # those that leave come first
        assert equal(NAMES[:4], there, before) == wanted


def test_a_shard_that_is_to_leave_gives_all() -> None:
    left = equal(NAMES[1:3], presplit(3), presplit(3))
    check(left, NAMES[1:3])
    assert moved(presplit(3), left) == pytest.approx(1 / 3, abs=ROUNDED)
