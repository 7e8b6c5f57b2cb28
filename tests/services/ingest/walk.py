"""A simulated walk, and how well rules tell from what it hears in which room the walker is.

`PYTHONPATH=.:services/ingest .venv/bin/python -m tests.services.ingest.walk` prints the table of
docs/measurements.md.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ingest.config import Config
from ingest.rules import where
from ingest.rules.levels import Rule

ROOMS = 8
APART_METRES = (8.0, 15.0)
REST_SECONDS = (10, 60)
METRES_PER_SECOND = 1.2
DBM_AT_ONE_METRE, DB_A_DECADE = -59, 25
SHADOW_SECONDS = 20
MISSED = 0.15
UNHEARD_DBM = -95
PHONE_SECONDS = 4

Point = tuple[float, float]


class Air(NamedTuple):
    """How a walk is heard: noise and shadow in dB, and seconds from scan to scan."""

    noise: float
    shadow: float
    scan_seconds: int


AIRS = [Air(4, 3, 1), Air(4, 3, 4), Air(6, 4, 1), Air(6, 4, 4)]


class Heard(NamedTuple):
    """A detection, as the rule reads it."""

    location: str
    timestamp: int
    rssi: int | None
    level: str = "1"
    received_at: float = 2**31  # not before it was heard

    @property
    def heard_at(self) -> int:
        return min(self.timestamp, int(self.received_at))


class Walk(NamedTuple):
    """For each second the room that is nearest, and what was heard in it, strongest first."""

    rooms: list[str]
    heard: list[list[Heard]]

    def strongest(self) -> "Walk":
        """Return the walk of a phone that reports its strongest beacon alone."""
        return Walk(self.rooms, [heard[:1] for heard in self.heard])


Estimate = Callable[[list[list[Heard]]], str]  # by what was heard in each second so far


class Score(NamedTuple):
    """The share of seconds in the right room; how long a change takes, in seconds."""

    right: float
    median: int
    ninetieth: int

    def __str__(self) -> str:
        return f"{self.right:.2f} ({self.median}, {self.ninetieth})"


def walk(air: Air, seconds: int, seed: int) -> Walk:
    """Return the walk of a seed."""
    chance = random.Random(seed)
    rooms = _rooms(chance)
    steps = list(_steps(rooms, seconds, chance))
    shadows, heard = [0.0] * ROOMS, []
    for second, at in enumerate(steps):
        if second % SHADOW_SECONDS == 0:
            shadows = [chance.gauss(0, air.shadow) for _ in rooms]
        scan = []
        for number, room in enumerate(rooms):
            loss = DB_A_DECADE * math.log10(max(1.0, math.dist(room, at)))
            dbm = DBM_AT_ONE_METRE - loss + shadows[number] + chance.gauss(0, air.noise)
            if dbm >= UNHEARD_DBM and chance.random() >= MISSED:
                scan.append(Heard(str(number), second, round(dbm)))
        scanned = second % air.scan_seconds == 0
        heard.append(sorted(scan, key=_rssi, reverse=True) if scanned else [])
    return Walk([_nearest(rooms, at) for at in steps], heard)


def _rssi(heard: Heard) -> float:
    return heard.rssi or where.WEAKEST_DBM


def _rooms(chance: random.Random) -> list[Point]:
    """Return two rows of rooms, so far apart from their neighbours."""
    across, along = chance.uniform(*APART_METRES), 0.0
    rooms = []
    for _ in range(ROOMS // 2):
        rooms += [(along, 0.0), (along, across)]
        along += chance.uniform(*APART_METRES)
    return rooms


def _steps(rooms: list[Point], seconds: int, chance: random.Random) -> Iterator[Point]:
    """Yield where the walker is in each second: resting in a room, or on the way to another."""
    at, left = chance.choice(rooms), seconds
    while left > 0:
        to = chance.choice([room for room in rooms if room != at])
        steps = int(math.dist(at, to) / METRES_PER_SECOND)
        rest = chance.randint(*REST_SECONDS)
        for step in [0] * rest + list(range(1, steps + 1)):
            part = step / steps
            yield at[0] + part * (to[0] - at[0]), at[1] + part * (to[1] - at[1])
            left -= 1
            if not left:
                return
        at = to


def _nearest(rooms: list[Point], at: Point) -> str:
    return str(min(range(ROOMS), key=lambda number: math.dist(rooms[number], at)))


def score(walks: Iterable[Walk], estimate: Estimate) -> Score:
    """Return how well an estimate tells the room, in all walks together."""
    right, delays = 0, list[int]()
    seconds = 0
    for rooms, heard in walks:
        shown = [estimate(heard[: second + 1]) for second in range(len(rooms))]
        right += sum(room == there for room, there in zip(rooms, shown, strict=True))
        seconds += len(rooms)
        delays += _delays(rooms, shown)
    return Score(
        right / seconds,
        int(statistics.median(delays)),
        statistics.quantiles(delays, n=10, method="inclusive")[-1].__ceil__(),
    )


def _delays(rooms: list[str], shown: list[str]) -> Iterator[int]:
    """Yield how long each change took to be shown, or the room was there without."""
    changes = [n for n in range(1, len(rooms)) if rooms[n] != rooms[n - 1]]
    for start, end in zip(changes, [*changes[1:], len(rooms)], strict=True):
        yield next((n for n in range(start, end) if shown[n] == rooms[n]), end) - start


def by_rule(rule: Rule) -> Estimate:
    """Return what the services tell with what `latest` keeps of the walk."""

    def estimate(heard: list[list[Heard]]) -> str:
        recent = _newest(heard, where.RECENT)
        return where.settled(recent, rule).location if recent else ""

    return estimate


def _newest(heard: list[list[Heard]], limit: int) -> list[Heard]:
    recent: list[Heard] = []
    for scan in reversed(heard):
        recent += scan
        if len(recent) >= limit:
            break
    return recent[:limit]


def strongest_now(heard: list[list[Heard]]) -> str:
    """Tell the strongest of the last scan."""
    last = next((scan for scan in reversed(heard) if scan), [])
    return last[0].location if last else ""


def by_chance(heard: list[list[Heard]]) -> str:
    """Tell one of the three strongest: as the last of one second, in the order of their hashes."""
    last = next((scan for scan in reversed(heard) if scan), [])[:3]
    return (
        min(last, key=lambda detection: random.Random(repr(detection)).random()).location
        if last
        else ""
    )


def mean_of(seconds: int) -> Estimate:
    """Return what tells the strongest mean of so many seconds."""

    def estimate(heard: list[list[Heard]]) -> str:
        by_room: dict[str, list[float]] = {}
        for advertisement in (advertisement for scan in heard[-seconds:] for advertisement in scan):
            by_room.setdefault(advertisement.location, []).append(_rssi(advertisement))
        means = {room: statistics.fmean(strengths) for room, strengths in by_room.items()}
        return max(means, key=means.__getitem__) if means else strongest_now(heard)

    return estimate


def rule_of_services() -> Rule:
    """Return the rule with the settings' defaults."""
    return Rule(
        Config.level_hits,
        Config.level_window_seconds,
        Config.level_margin_db,
        Config.level_silence_seconds,
    )


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--walks", type=int, default=20)
    options.add_argument("--seconds", type=int, default=900)
    arguments = options.parse_args()
    estimates: dict[str, Estimate] = {
        "one of the three strongest": by_chance,
        "strongest now": strongest_now,
        "mean of 4 s": mean_of(4),
        "mean of 7 s": mean_of(7),
        "the rule": by_rule(rule_of_services()),
    }
    print("| noise, shadow; a scan each |", " | ".join(estimates), "|")
    print("|---" * (len(estimates) + 1) + "|")
    for air in AIRS:
        walks = [walk(air, arguments.seconds, seed) for seed in range(arguments.walks)]
        ways = {"": walks}
        if air.scan_seconds == PHONE_SECONDS:
            ways["; its strongest alone"] = [walk.strongest() for walk in walks]
        for way, walked in ways.items():
            cells = [str(score(walked, estimate)) for estimate in estimates.values()]
            name = f"{air.noise:.0f}, {air.shadow:.0f} dB; {air.scan_seconds} s{way}"
            print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
