"""Which shard is to hold which hashes: each an equal part, and a change moves the least."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

LOWEST, HIGHEST = -(2**63) - 1, 2**63  # just beyond all hashes
# By so many hashes equal parts may differ: MongoDB splits a new collection at rounded numbers.
ROUNDING = 2**16


class Zone(NamedTuple):
    """Hashes from `low` to below `high`, and the shard that is to hold them, or does."""

    shard: str
    low: int
    high: int

    @property
    def size(self) -> int:
        """How many hashes it has."""
        return self.high - self.low


def equal(shards: list[str], zones: Iterable[Zone], chunks: Iterable[Zone]) -> set[Zone]:
    """Return zones that give each shard its equal part.

    `zones` are those that are there; hashes without one are counted where they lie, by `chunks`.
    Who holds too much gives the end of it to those who hold too little, and keeps the rest.
    """
    kept = list(_merged([*zones, *_outside(list(zones), chunks)]))
    part = (HIGHEST - LOWEST) // len(shards)
    spare: list[Zone] = []
    for shard in {zone.shard for zone in kept}:
        wanted = part if shard in shards else 0
        spare += _cut_off(kept, shard, _held(kept, shard) - wanted)
    spare.sort(key=attrgetter("low"))
    takers = [shard for shard in shards if part - _held(kept, shard) > ROUNDING]
    for number, taker in enumerate(takers, start=1):
        is_last = number == len(takers)
        missing = HIGHEST - LOWEST if is_last else part - _held(kept, taker)
        kept += [zone._replace(shard=taker) for zone in _cut_off(spare, None, missing)]
    return set(_merged([*kept, *spare]))


def moved(before: Iterable[Zone], after: Iterable[Zone]) -> float:
    """Return the part of the hashes that has another shard in `after`, from 0 to 1."""
    after = list(after)
    return sum(
        max(0, min(old.high, new.high) - max(old.low, new.low))
        for old in before
        for new in after
        if old.shard != new.shard
    ) / (HIGHEST - LOWEST)


def _held(zones: Iterable[Zone], shard: str) -> int:
    return sum(zone.size for zone in zones if zone.shard == shard)


def _cut_off(zones: list[Zone], shard: str | None, hashes: int) -> list[Zone]:
    """Take so many hashes from the end of a shard's zones, or of anybody's; a rounding stays."""
    taken: list[Zone] = []
    for zone in reversed([zone for zone in zones if shard in (None, zone.shard)]):
        if hashes <= ROUNDING:
            break
        zones.remove(zone)
        if zone.size - hashes > ROUNDING:
            zones.append(zone._replace(high=zone.high - hashes))
            zone = zone._replace(low=zone.high - hashes)
        hashes -= zone.size
        taken.append(zone)
    return taken


def _outside(zones: list[Zone], chunks: Iterable[Zone]) -> Iterator[Zone]:
    """Yield the parts of chunks that lie in no zone."""
    zones = sorted(zones, key=attrgetter("low"))
    gaps = list(
        zip(
            [LOWEST, *(zone.high for zone in zones)],
            [*(zone.low for zone in zones), HIGHEST],
            strict=True,
        )
    )
    for chunk in chunks:
        for low, high in gaps:
            part = Zone(chunk.shard, max(chunk.low, low), min(chunk.high, high))
            if part.size > 0:
                yield part


def _merged(zones: Iterable[Zone]) -> Iterator[Zone]:
    """Yield zones by their hashes, neighbours of the same shard as one."""
    in_order = sorted(zones, key=attrgetter("low"))
    for shard, group in groupby(in_order, key=attrgetter("shard")):
        neighbours = list(group)
        yield Zone(shard, neighbours[0].low, neighbours[-1].high)
