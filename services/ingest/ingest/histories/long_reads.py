"""Whole histories from the database straight to blocks: no object is made for each detection."""

import json
from collections.abc import Generator, Iterable, Iterator

from ingest.histories.blocks import BLOCK_ROWS, Block, Row, in_blocks, packed, since
from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.detections import Detections, HistoryRow
from ingest.storage.detections.states import State
from ingest.storage.places.times_by_place import TimesAt
from ingest.turns import turn

# How many detections are read with one command; while they are, each takes some 100 bytes.
PIECE = 8192


def read_blocks(
    detections: Detections, wanted: TimeRange, state: State | None, room: int
) -> tuple[tuple[Block, ...], int]:
    """Return the newest detections of a range, with all that the state has, and since when.

    From that second on these are all: the beginning of the range, unless they take more than `room`
    bytes.
    """
    source = each_block(detections, wanted, state)
    kept = packed(source, room)
    is_all = next(source, None) is None
    source.close()
    if is_all:
        return kept, wanted.start
    floor = kept[-1].oldest + 1  # this second may have more than these
    return since(floor, kept), floor


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


def each_block(
    detections: Detections, wanted: TimeRange, state: State | None
) -> Generator[Block, None, None]:
    """Yield all detections of a range, newest first, with all that the state has.

    While one is worked with, one piece is held and no turn.
    """
    while wanted.end >= wanted.start:
        with turn():
            piece, end = _piece(detections, wanted, state)
        yield from piece
        if end is None:
            return
        if not piece:  # a second of a phone whose clock stands still: it has no bound
            second = wanted._replace(start=end, end=end)
            rows = detections.list_between(second, state and state.read_at)
            yield from in_blocks(texts(rows))
            end -= 1
        wanted = wanted._replace(end=end)


def _piece(
    detections: Detections, wanted: TimeRange, state: State | None
) -> tuple[list[Block], int | None]:
    """Return the newest of a range in whole seconds, and the second before; None: that is all."""
    places = detections.times_by_place(wanted, PIECE, state and state.read_at)
    keys, formats = _in_order(places)
    end = None
    if len(keys) == PIECE:  # the last second may have more than these
        end = keys[-1] // len(formats)
        while keys and keys[-1] // len(formats) == end:
            keys.pop()
    starts = range(0, len(keys), BLOCK_ROWS)
    return [_block(keys[first : first + BLOCK_ROWS], formats) for first in starts], end


def _in_order(places: list[TimesAt]) -> tuple[list[int], list[bytes]]:
    """Return a number for each detection, newest first, and what makes a text of a timestamp.

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
    beginnings = (_beginning(place.level, place.location) for place in places)
    return keys, [beginning.replace(b"%", b"%%") + b"%d}" for beginning in beginnings]


def _block(keys: list[int], formats: list[bytes]) -> Block:
    """Return the detections of some numbers: one text is made for all of them at once."""
    count = len(formats)
    timestamps = [key // count for key in keys]
    places = [key % count for key in keys]
    text = b",".join(map(formats.__getitem__, places)) % tuple(timestamps)
    if len(str(timestamps[0])) == len(str(timestamps[-1])):
        lengths = [len(format_ % timestamps[0]) + 1 for format_ in formats]
        return Block(timestamps, text, map(lengths.__getitem__, places))
    rows = zip(places, timestamps, strict=True)
    return Block(timestamps, text, (len(formats[n] % timestamp) + 1 for n, timestamp in rows))
