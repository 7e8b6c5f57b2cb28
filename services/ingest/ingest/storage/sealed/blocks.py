"""A block: some stretch of somebody's history, in one document of a few bytes a detection.

It is written in columns, since what follows each other in time is alike: zlib makes little of
seconds that are all 4 apart. The fields of the document:

- `_id`: staff id and `last`, so that two services that seal the same make one document;
- `staff_id`, by which it is sharded; `first`, `last`: unix seconds of its oldest and its newest
  detection; `since`, `until`: the same with when they were heard by our clock; `count`;
  `format`: 1;
- `columns`: what `_packed` makes of the columns, each as little-endian numbers, in this order:
  timestamps less the one before (8 bytes; the first less `first`), received less timestamp (8),
  the first 4 bytes of the id as a number, xor timestamp (8), strength (1; 127: not known), index of
  the place (2); numbers of several bytes as their lowest bytes, then the next ones;
- `names`: the last 2 bytes of each id;
- `places`: documents of `mac`, `level` and `location`; `count` of the detections there; `heard`:
  when the newest of them was by our clock; `first`, and `last` where it is not that; of corrected
  ones `was`, as it is in `staff`;
- `heard`, of those that have it in `staff`: by index;
- `checksum`: CRC-32 of `columns`, `names`, `places` and `heard`.

Of an id 6 of its 12 bytes are kept: the others are noise that no zlib makes smaller, 6 bytes each.
"""

import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import add, sub, xor
from typing import Any, NamedTuple

import bson

from ingest.rules.request_parameters import StaffId
from ingest.storage.detections.documents import (
    FIRST_OF_ID,
    KEPT_OF_ID,
    LAST_OF_ID,
    Detection,
    Document,
    detection,
    id_digest,
    told_id,
)

FORMAT = 1
MAX_DETECTIONS = 2048
_NOT_KNOWN = 127  # which no sender may mean as a strength
_LEVEL = 6  # of zlib: 9 takes twice as long for 1 % less


class DamagedBlock(Exception):
    """The bytes of a block are not those that were written."""


class SealedDetection(NamedTuple):
    """A detection as a block has it: as it was stored, but for what is not kept of its id."""

    id: str  # as it is told
    mac: str
    level: str
    location: str
    timestamp: int
    rssi: int | None
    received_at: int  # unix seconds
    heard: int | None
    was: Document | None

    @property
    def heard_at(self) -> int:
        """Return when it was heard by our clock, as far as it is known."""
        return min(self.timestamp if self.heard is None else self.heard, self.received_at)

    @property
    def content(self) -> tuple[Any, ...]:
        """Return what is equal where all that is kept is equal."""
        return (*self[:8], _was_key(self.was))


class _Columns(NamedTuple):
    times: "array[int]"
    delays: "array[int]"
    id_times: "array[int]"
    strengths: "array[int]"
    places: "array[int]"


# As `array` names them. Most of the 8 bytes of a time are zeros, which take no room.
_TYPES = ("q", "q", "q", "b", "H")


def of_row(row: Document) -> SealedDetection:
    """Return a document of `staff` as a block has it."""
    stored = detection(row)
    return SealedDetection(
        id=stored.id,
        mac=stored.mac,
        level=stored.level,
        location=stored.location,
        timestamp=stored.timestamp,
        rssi=stored.rssi,
        received_at=int(stored.received_at),
        heard=row.get("heard"),
        was=row.get("was"),
    )


def sealed(staff_id: StaffId, detections: Sequence[SealedDetection]) -> Document:
    """Return the block of some detections, all of one person, the oldest first."""
    if not 0 < len(detections) <= MAX_DETECTIONS:
        raise ValueError(f"{len(detections)} detections; a block has 1 to {MAX_DETECTIONS}")
    times = [detection.timestamp for detection in detections]
    received = [detection.received_at for detection in detections]
    strengths = [detection.rssi for detection in detections]
    ids = [bytes.fromhex(detection.id[: 2 * KEPT_OF_ID]) for detection in detections]
    at_places = [(*detection[1:4], _was_key(detection.was)) for detection in detections]
    index_of = {place: index for index, place in enumerate(dict.fromkeys(at_places))}
    columns = _Columns(
        array("q", map(sub, times, [times[0], *times])),
        array("q", map(sub, received, times)),
        array("q", map(xor, (int.from_bytes(id_[:FIRST_OF_ID], "big") for id_ in ids), times)),
        array("b", (_NOT_KNOWN if dbm is None else dbm for dbm in strengths)),
        array("H", map(index_of.__getitem__, at_places)),
    )
    heard_at = [detection.heard_at for detection in detections]
    block: Document = {
        "_id": {"staff_id": staff_id, "last": times[-1]},
        "staff_id": staff_id,
        "first": times[0],
        "last": times[-1],
        "since": min(times[0], *heard_at),
        "until": max(times[-1], *heard_at),
        "count": len(detections),
        "format": FORMAT,
        "columns": _packed(columns),
        "names": b"".join(id_[FIRST_OF_ID:] for id_ in ids),
        "places": _places(detections, columns.places, heard_at),
    }
    heard = {
        str(index): detection.heard
        for index, detection in enumerate(detections)
        if detection.heard is not None
    }
    block |= {"heard": heard} if heard else {}
    return block | {"checksum": checksum(block)}


def corrected(block: Document, places: Sequence[Document]) -> Document:
    """Return a block with others in the stead of its places, of what is at each index."""
    changed = block | {"places": list(places)}
    return changed | {"checksum": checksum(changed)}


class Block:
    """A block whose bytes are those that were written; of it no more is made than is asked for."""

    def __init__(self, document: Document) -> None:
        """Raises DamagedBlock."""
        with _Damage(document):
            if document["format"] != FORMAT:
                raise DamagedBlock(f"its format is {document['format']}, and not {FORMAT}")
            if document["checksum"] != checksum(document):
                raise DamagedBlock("its checksum is another")
            self.document = document
            self.first, self.last = int(document["first"]), int(document["last"])
            self._planes = _Planes(document["columns"], document["count"])
            steps = self._planes.column("times")
            self.times: Sequence[int] = list(accumulate(steps, initial=self.first))[1:]
            if self.times[0] != self.first or self.times[-1] != self.last:
                raise DamagedBlock("its times are not those from `first` to `last`")
            self.at: Sequence[int] = self._planes.column("places")
            self.places: Sequence[Document] = document["places"]
            if max(self.at) >= len(self.places):
                raise DamagedBlock("a place is missing")
            self._names: bytes = document["names"]
            if len(self._names) != LAST_OF_ID * len(self.times):
                raise DamagedBlock("names are missing")

    def span(self, start: int, end: int) -> range:
        """Return the indexes of what lies between two unix seconds, both included."""
        if start <= self.first and self.last <= end:
            return range(len(self.times))
        return range(bisect_left(self.times, start), bisect_right(self.times, end))

    def of_seconds(self, seconds: Iterable[int]) -> list[int]:
        """Return the indexes of what is of some unix seconds, in their order."""
        return [index for second in sorted(seconds) for index in self.span(second, second)]

    def named_otherwise(self) -> list[int]:
        """Return the indexes of those whose names do not begin with their timestamp: few."""
        return [n for n, other in enumerate(self._planes.column("id_times")) if other]

    def newest_first(self, staff_id: StaffId, start: int, end: int) -> list[Detection]:
        """Return what lies between two unix seconds, of each second the highest id first.

        Raises DamagedBlock.
        """
        span = self.span(start, end)
        part = slice(span.start, span.stop)
        with _Damage(self.document):
            column, person = self._planes.column, self.document["staff_id"]
            times, at, strengths = self.times[part], self.at[part], column("strengths")[part]
            received = list(map(add, times, column("delays")[part]))
            heard = times
            if known := self.document.get("heard"):
                heard = [known.get(str(n), self.times[n]) for n in span]
            macs, levels, locations = (
                [place[name] for place in self.places] for name in ("mac", "level", "location")
            )
            # All at once what would take as long as the rest, one by one.
            first = array("I", map(xor, column("id_times")[part], times))
            firsts = _in_order(first, "big").tobytes().hex()
            lasts = self._names[LAST_OF_ID * span.start : LAST_OF_ID * span.stop].hex()
            digests = {
                (place, strength): id_digest(person, macs[place], _dbm(strength))
                for place, strength in {*zip(at, strengths, strict=True)}
            }
            every = [
                Detection(
                    firsts[8 * n : 8 * n + 8] + lasts[4 * n : 4 * n + 4] + digests[place, strength],
                    staff_id,
                    macs[place],
                    None if strength == _NOT_KNOWN else strength,
                    time,
                    min(heard_at, received_at),
                    float(received_at),
                    levels[place],
                    locations[place],
                )
                for n, (place, strength, time, heard_at, received_at) in enumerate(
                    zip(at, strengths, times, heard, received, strict=True)
                )
            ]
        every.reverse()
        return every

    def detections(self, indexes: Iterable[int] | None = None) -> list[SealedDetection]:
        """Return all, or those of some indexes, in their order. Raises DamagedBlock."""
        with _Damage(self.document):
            column = self._planes.column
            delays, id_times, strengths = map(column, ("delays", "id_times", "strengths"))
            names, heard = self._names, self.document.get("heard", {})
            person = self.document["staff_id"]
            made: list[SealedDetection] = []
            for index in range(len(self.times)) if indexes is None else indexes:
                time, place = self.times[index], self.places[self.at[index]]
                rssi = _dbm(strengths[index])
                id_ = (id_times[index] ^ time).to_bytes(FIRST_OF_ID, "big")
                id_ += names[index * LAST_OF_ID : (index + 1) * LAST_OF_ID]
                made.append(
                    SealedDetection(
                        told_id(id_, person, place["mac"], rssi),
                        place["mac"],
                        place["level"],
                        place["location"],
                        time,
                        rssi,
                        time + delays[index],
                        heard.get(str(index)) if heard else None,
                        place.get("was"),
                    )
                )
            return made


def _dbm(strength: int) -> int | None:
    return None if strength == _NOT_KNOWN else strength


def _places(
    detections: Sequence[SealedDetection], at: "array[int]", heard_at: Sequence[int]
) -> list[Document]:
    places: dict[int, Document] = {}
    for index, sealed_, heard in zip(at, detections, heard_at, strict=True):
        place = places.get(index)
        if place is None:
            names = {"mac": sealed_.mac, "level": sealed_.level, "location": sealed_.location}
            place = places[index] = names | {"count": 0, "first": sealed_.timestamp, "heard": heard}
            place |= {"was": sealed_.was} if sealed_.was else {}
        place["count"] += 1
        place["last"] = sealed_.timestamp
        place["heard"] = max(place["heard"], heard)
    for place in places.values():
        if place["last"] == place["heard"]:
            del place["last"]
    return [places[index] for index in range(len(places))]


def _was_key(was: Document | None) -> Any:
    return tuple(sorted(was.items())) if was else None


def checksum(block: Document) -> int:
    """Return what a block has as its checksum."""
    described = bson.encode({"places": block["places"], "heard": block.get("heard")})
    return zlib.crc32(described, zlib.crc32(block["names"], zlib.crc32(block["columns"])))


def _packed(columns: _Columns) -> bytes:
    return zlib.compress(b"".join(map(_by_significance, columns)), _LEVEL)


class _Planes:
    """The columns of a block, each made when it is asked for."""

    def __init__(self, packed: bytes, count: int) -> None:
        self._whole = zlib.decompress(packed)
        self._count = count
        size = count * sum(array(kind).itemsize for kind in _TYPES)
        if len(self._whole) != size:
            raise DamagedBlock(f"{len(self._whole)} bytes of columns, and not {size}")

    def column(self, name: str) -> "array[int]":
        index = _Columns._fields.index(name)
        begin = self._count * sum(array(kind).itemsize for kind in _TYPES[:index])
        column: array[int] = array(_TYPES[index])
        width, count = column.itemsize, self._count
        numbers = bytearray(count * width)
        for byte in range(width):
            plane = begin + byte * count
            numbers[byte::width] = self._whole[plane : plane + count]
        column.frombytes(numbers)
        return _in_order(column, "little")


class _Damage:
    """Tells what cannot be read as a DamagedBlock, and of which block; not whose it is."""

    def __init__(self, document: Document) -> None:
        self._last = document.get("last")

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (DamagedBlock, *_UNREADABLE)):
            why = error if isinstance(error, DamagedBlock) else repr(error)
            raise DamagedBlock(f"the block whose last is {self._last}: {why}") from None


_UNREADABLE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    zlib.error,
    bson.errors.BSONError,
)


def _by_significance(column: "array[int]") -> bytes:
    """Return the lowest byte of each number, then the next ones: the high ones are alike."""
    numbers, width = _in_order(column, "little").tobytes(), column.itemsize
    return b"".join(numbers[byte::width] for byte in range(width))


def _in_order(column: "array[int]", order: str) -> "array[int]":
    """Return the same numbers with the highest byte first, "big", or last, "little"."""
    if sys.byteorder != order:
        column = column[:]
        column.byteswap()
    return column
