"""Whole histories from the database straight to blocks: no object is made for each detection."""

import json
from collections.abc import Iterable, Iterator

from ingest.histories.blocks import BLOCK_ROWS, Block, Row, in_blocks, packed
from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.detections import Detections, HistoryRow
from ingest.storage.detections.states import State
from ingest.storage.places.times_by_place import TimesAt
from ingest.turns import turn

# How many detections are read with one command; while they are, each takes some 100 bytes.
PIECE = 8192


def read_blocks(
    detections: Detections, wanted: TimeRange, state: State | None
) -> tuple[Block, ...]:
    """Return all detections of a range, newest first, with all that the state has."""
    return packed(_blocks(detections, wanted, state))


def texts(rows: Iterable[HistoryRow]) -> Iterator[Row]:
    """Yield rows of the database as those of the answer."""
    beginnings: dict[tuple[str, str], bytes] = {}
    for timestamp, level, location in rows:
        place = level, location
        if place not in beginnings:
            beginnings[place] = _beginning(*place)
        yield timestamp, b"%b%d}" % (beginnings[place], timestamp)


def _beginning(level: str, location: str) -> bytes:
    """Return the text of a detection up to its timestamp."""
    text = json.dumps({"level": level, "location": location}, separators=(",", ":"))
    return f'{text[:-1]},"timestamp":'.encode()


def _blocks(detections: Detections, wanted: TimeRange, state: State | None) -> Iterator[Block]:
    as_of = state and state.read_at
    while wanted.end >= wanted.start:
        with turn():
            places = detections.times_by_place(wanted, PIECE, as_of)
            keys, beginnings = _in_order(places)
            if not keys:
                return
            is_all, count = len(keys) < PIECE, len(beginnings)
            end = keys[-1] // count
            if not is_all:  # this second may have more than these
                while keys and keys[-1] // count == end:
                    keys.pop()
            for first in range(0, len(keys), BLOCK_ROWS):
                times = [divmod(key, count) for key in keys[first : first + BLOCK_ROWS]]
                rows = [b"%b%d}" % (beginnings[place], timestamp) for timestamp, place in times]
                yield Block([timestamp for timestamp, _ in times], rows)
        if is_all:
            return
        if not keys:  # a second of a phone whose clock stands still: it has no bound
            second = wanted._replace(start=end, end=end)
            yield from in_blocks(texts(detections.list_between(second, as_of)))
            end -= 1
        wanted = wanted._replace(end=end)


def _in_order(places: list[TimesAt]) -> tuple[list[int], list[bytes]]:
    """Return a number for each detection, newest first, and the beginnings of the texts.

    The number is the timestamp times the count of places, plus which of them it is. Within a second
    the places are in the order of the index.
    """
    places.sort(key=lambda place: (place.level, place.location), reverse=True)
    keys = [
        timestamp * len(places) + number
        for number, place in enumerate(places)
        for timestamp in place.timestamps
    ]
    keys.sort(reverse=True)
    return keys, [_beginning(place.level, place.location) for place in places]
