"""Histories, kept compressed in the process and proved exact at every request.

One point read of `latest` tells whether a kept history is still all of it. When not, only what
changed since is read again. Rows are kept as the text of the answer, in blocks, so that an answer
is a slice, and a compressed answer the blocks as they are.
"""

import bisect
import itertools
import json
import struct
import threading
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pymongo

from ingest.rules.parameters import MAX_UNIX_SECONDS, StaffId, TimeRange
from ingest.storage.detections import Detections
from ingest.storage.latest import Latest, Version

# Rows of a block: the unit that is compressed, and decompressed for a part of it.
BLOCK_ROWS = 512
# What all kept histories may take, compressed: 30,000 detections take about 0.3 MiB.
KEPT_BYTES = 6 * 2**20
# How many answers are kept as they were given, and how long one may be for that.
ANSWERS, WHOLE_BYTES = 10, 256 * 1024
# Levels of compression: for what is kept, and for what is sent once.
THOROUGH, QUICK = 6, 1
# How many histories are read at once: each holds a batch of documents of the driver's.
READERS = 2
# A window that ended so long ago is answered alone: keeping it would mean all up to now as well.
KEPT_AGE_SECONDS = 86_400
# A database that does not tell a version in this time tells no history either.
VERSION_TIMEOUT_SECONDS = 0.8

_OPENING, _CLOSING = b'{"location":[', b"]}\n"

Row = tuple[int, bytes]  # the timestamp, and the text of the answer


class Block:
    """Consecutive rows of a history, newest first. Never changes."""

    __slots__ = ("_ages", "_crc", "_ends", "_newest", "_packed", "_shift", "text")

    def __init__(self, rows: list[Row]) -> None:
        self._newest = rows[0][0]
        self._ages = array("Q", [self._newest - timestamp for timestamp, _ in rows])
        if self._ages[-1] < 2**32:
            self._ages = array("I", self._ages)
        ends = itertools.accumulate(len(text) + 1 for _, text in rows)
        self._ends = array("I", [end - 1 for end in ends])
        self.text: bytes | None = b",".join(text for _, text in rows)
        self._packed: bytes | None = None
        self._crc = self._shift = 0

    @property
    def rows(self) -> int:
        """Return how many rows these are."""
        return len(self._ages)

    @property
    def length(self) -> int:
        """Return the bytes of the text."""
        return int(self._ends[-1])

    @property
    def size(self) -> int:
        """Return about how many bytes this takes besides an inflated text."""
        kept = len(self._packed) if self._packed is not None else self.length
        return kept + 400 + (self._ages.itemsize + self._ends.itemsize) * self.rows

    def pack(self, level: int) -> bytes:
        """Compress the text, and return that."""
        text = self.inflate()
        packed = _deflate(text, level)
        self._crc, self._shift = zlib.crc32(text), _shift(len(text))
        self._packed = packed  # last: another thread may look
        return packed

    def deflated(self, crc: int) -> tuple[bytes, int]:
        """Return the compressed text, and the checksum of what had `crc` with the text after it."""
        packed = self._packed or self.pack(QUICK)
        return packed, _multiply(self._shift, crc) ^ self._crc

    def inflate(self) -> bytes:
        """Return the text."""
        if self.text is not None:
            return self.text
        return zlib.decompressobj(-15).decompress(self._packed or b"")

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions of the rows between two timestamps."""
        if end >= self._newest and start <= self._newest - self._ages[-1]:
            return 0, self.rows
        low = bisect.bisect_left(self._ages, self._newest - end)
        return low, max(low, bisect.bisect_right(self._ages, self._newest - start))

    def split(self, low: int, high: int) -> list[Row]:
        """Return the rows between two positions."""
        text = self.inflate()
        begins = [0, *(end + 1 for end in self._ends)]
        return [
            (self._newest - self._ages[n], text[begins[n] : self._ends[n]])
            for n in range(low, high)
        ]

    def part(self, low: int, high: int) -> "Block | Part":
        """Return the rows between two positions, to answer with."""
        if high - low == self.rows:
            return self
        begin = self._ends[low - 1] + 1 if low else 0
        return Part(self, begin, self._ends[high - 1], high - low)


class Part(NamedTuple):
    """A few rows of a block in an answer."""

    block: Block
    begin: int
    end: int
    rows: int

    @property
    def length(self) -> int:
        """Return the bytes of the text."""
        return self.end - self.begin

    def inflate(self) -> bytes:
        """Return the text."""
        return self.block.inflate()[self.begin : self.end]

    def deflated(self, crc: int) -> tuple[bytes, int]:
        """Return the compressed text, and the checksum of what had `crc` with the text after it."""
        text = self.inflate()
        return _deflate(text, QUICK), zlib.crc32(text, crc)


class Answer:
    """One window of a history: its blocks, and what names this state of it (None: nothing)."""

    def __init__(self, blocks: list[Block | Part], version: int | None) -> None:
        self._blocks = blocks
        self.rows = sum(block.rows for block in blocks)
        commas = max(0, len(blocks) - 1)
        # Of the body, not compressed.
        self.length = len(_OPENING + _CLOSING) + commas + sum(block.length for block in blocks)
        self.etag = None if version is None else f'W/"{version:x}-{self.rows:x}-{self.length:x}"'
        self._text: bytes | None = None
        self._gzip: bytes | None = None

    def text(self) -> Iterable[bytes]:
        """Return the body: a short one whole, which is kept; a long one block by block."""
        if self.length > WHOLE_BYTES:
            return self._pieces()
        if self._text is None:
            self._text = b"".join(self._pieces())
        return [self._text]

    def gzip(self) -> bytes:
        """Return the body as one gzip member, of the blocks as they are kept."""
        if self._gzip is None:
            self._gzip = self._joined()
        return self._gzip

    def _pieces(self) -> Iterator[bytes]:
        before = _OPENING
        for block in self._blocks:
            yield before
            yield block.inflate()
            before = b","
        yield _CLOSING if self._blocks else _OPENING + _CLOSING

    def _joined(self) -> bytes:
        crc = zlib.crc32(_OPENING)
        parts = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff", _literal(_OPENING)]
        for number, block in enumerate(self._blocks):
            if number:
                parts.append(_COMMA)
                crc = zlib.crc32(b",", crc)
            packed, crc = block.deflated(crc)
            parts.append(packed)
        crc = zlib.crc32(_CLOSING, crc)
        parts += [_literal(_CLOSING, last=True), struct.pack("<II", crc, self.length % 2**32)]
        return b"".join(parts)


class History:
    """All detections of one staff member from `floor` on, newest first, as of a version."""

    __slots__ = ("blocks", "floor", "size", "version")

    def __init__(self, version: int, floor: int, blocks: tuple[Block, ...]) -> None:
        self.version = version
        self.floor = floor
        self.blocks = blocks  # the first may be a short one, not compressed: the tail
        self.size = sum(block.size for block in blocks)

    def window(self, wanted: TimeRange, version: int | None) -> Answer:
        """Return what lies between two timestamps."""
        spans = ((block, *block.span(wanted.start, wanted.end)) for block in self.blocks)
        return Answer([block.part(low, high) for block, low, high in spans if high > low], version)

    def before(self, since: int) -> tuple[list[Row], tuple[Block, ...]]:
        """Return what is older than `since`: a few rows, and the whole blocks after them."""
        for number, block in enumerate(self.blocks):
            low, high = block.span(0, since - 1)
            if high - low == block.rows:
                if block.rows < BLOCK_ROWS:  # the tail: it still grows
                    return block.split(low, high), self.blocks[number + 1 :]
                return [], self.blocks[number:]
            if high > low:
                return block.split(low, high), self.blocks[number + 1 :]
        return [], ()


class Histories:
    """Answers windows of histories: from memory where that is proved to be all of it."""

    def __init__(self, detections: Detections, latest: Latest) -> None:
        self._detections = detections
        self._latest = latest
        self._lock = threading.Lock()  # of the three below
        self._answers: OrderedDict[tuple[TimeRange, int], Answer] = OrderedDict()
        self._kept: OrderedDict[StaffId, History] = OrderedDict()
        self._reading: dict[StaffId, threading.Lock] = {}
        self._readers = threading.BoundedSemaphore(READERS)

    def versions(self, staff_ids: list[StaffId]) -> dict[StaffId, Version]:
        """Return where these histories stand now. Raises StoreUnavailable, in under a second."""
        with pymongo.timeout(VERSION_TIMEOUT_SECONDS):
            return self._latest.versions(staff_ids)

    def between(self, wanted: TimeRange, now: float) -> Answer:
        """Answer a window with everything that was acknowledged before the call."""
        version = self.versions([wanted.staff_id]).get(wanted.staff_id)
        return self.at_hand(wanted, version) or self.read(wanted, version, now)

    def at_hand(self, wanted: TimeRange, version: Version | None) -> Answer | None:
        """Answer from memory alone, None when that is not enough for this version."""
        if version is None:
            return None
        asked = (wanted, version.number)
        with self._lock:
            answer = self._answers.get(asked)
            if answer:
                self._answers.move_to_end(asked)
                return answer
            history = self._kept.get(wanted.staff_id)
            if history is None or history.version != version.number:
                return None
            self._kept.move_to_end(wanted.staff_id)
        return self._told(history, wanted) if history.floor <= wanted.start else None

    def read(self, wanted: TimeRange, version: Version | None, now: float) -> Answer:
        """Answer with what the database has to add. Raises StoreUnavailable."""
        if version is None or wanted.end < now - KEPT_AGE_SECONDS:
            with self._readers:
                blocks = _blocks(self._rows(wanted.staff_id, wanted.start, wanted.end))
            return History(0, wanted.start, blocks).window(wanted, None)
        with self._lock:
            alone = self._reading.setdefault(wanted.staff_id, threading.Lock())
        with alone:
            history = self._kept.get(wanted.staff_id)
            if history and history.version > version.number:
                # Somebody was quicker, or the database is an older copy: it has to say.
                version = self.versions([wanted.staff_id]).get(wanted.staff_id, version)
            with self._readers:
                history = self._brought_up(history, wanted, version)
            self._keep(wanted.staff_id, history)
        return self._told(history, wanted)

    def _told(self, history: History, wanted: TimeRange) -> Answer:
        """Return an answer, and keep it for who asks the same while nothing changes."""
        answer = history.window(wanted, history.version)
        if answer.length <= WHOLE_BYTES:
            with self._lock:
                self._answers[wanted, history.version] = answer
                if len(self._answers) > ANSWERS:
                    self._answers.popitem(last=False)
        return answer

    def _brought_up(self, history: History | None, wanted: TimeRange, version: Version) -> History:
        """Return the history at this version, reading as little as possible."""
        staff_id = wanted.staff_id
        if history and history.version != version.number:
            since = version.changed_since(history.version)
            history = None if since is None else self._renewed(history, staff_id, since, version)
        if history is None:
            blocks = _blocks(self._rows(staff_id, wanted.start, MAX_UNIX_SECONDS))
            return History(version.number, wanted.start, blocks)
        if wanted.start < history.floor:
            older = _blocks(self._rows(staff_id, wanted.start, history.floor - 1))
            history = History(version.number, wanted.start, history.blocks + older)
        return history

    def _renewed(self, old: History, staff_id: StaffId, since: int, version: Version) -> History:
        """Return the history with what is newer than `since` read again."""
        since = max(since, old.floor)
        rows, rest = old.before(since)
        fresh = self._rows(staff_id, since, MAX_UNIX_SECONDS)
        return History(version.number, old.floor, _grown(itertools.chain(fresh, rows)) + rest)

    def _rows(self, staff_id: StaffId, start: int, end: int) -> Iterator[Row]:
        beginnings: dict[tuple[Any, Any], str] = {}
        for found in self._detections.list_between(TimeRange(staff_id, start, end)):
            place = found["level"], found["location"]
            beginning = beginnings.get(place)
            if beginning is None:
                text = json.dumps({"level": place[0], "location": place[1]}, separators=(",", ":"))
                beginning = beginnings[place] = text[:-1] + ',"timestamp":'
            timestamp = found["timestamp"]
            yield timestamp, f"{beginning}{timestamp}}}".encode()

    def _keep(self, staff_id: StaffId, history: History) -> None:
        with self._lock:
            self._kept[staff_id] = history
            self._kept.move_to_end(staff_id)
            taken = sum(kept.size for kept in self._kept.values())
            while taken > KEPT_BYTES:
                oldest, gone = self._kept.popitem(last=False)
                taken -= gone.size
                self._reading.pop(oldest, None)


def _blocks(rows: Iterable[Row]) -> tuple[Block, ...]:
    """Return rows as blocks, compressed; less than one whole block stays as it is, and may grow."""
    blocks: list[Block] = []
    source = iter(rows)
    while batch := list(itertools.islice(source, BLOCK_ROWS)):
        blocks.append(Block(batch))
        if len(blocks) > 1 or len(batch) == BLOCK_ROWS:
            blocks[-1].pack(THOROUGH)
            blocks[-1].text = None
    return tuple(blocks)


def _grown(rows: Iterator[Row]) -> tuple[Block, ...]:
    """Return the newest rows as blocks, so that the first is the short one that grows."""
    newest = list(itertools.islice(rows, 2 * BLOCK_ROWS))
    if not BLOCK_ROWS <= len(newest) < 2 * BLOCK_ROWS:
        return _blocks(itertools.chain(newest, rows))
    tail = len(newest) - BLOCK_ROWS
    return _blocks(newest[:tail]) + _blocks(newest[tail:])


def _deflate(text: bytes, level: int) -> bytes:
    """Compress text so that it ends on a byte and other blocks can follow it."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)


def _literal(text: bytes, *, last: bool = False) -> bytes:
    """Return text as a block of a deflate stream that is stored as it is."""
    return struct.pack("<BHH", last, len(text), len(text) ^ 0xFFFF) + text


_COMMA = _literal(b",")


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials modulo that of CRC-32, bits reflected (as zlib's multmodp)."""
    product = 0
    while a:
        if a & 0x80000000:
            product ^= b
        a = a << 1 & 0xFFFFFFFF
        b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
    return product


def _shift(length: int) -> int:
    """Return what a checksum is multiplied with when `length` bytes follow: x to the 8 * length."""
    power, square, bits = 0x80000000, 0x40000000, 8 * length
    while bits:
        if bits & 1:
            power = _multiply(square, power)
        square = _multiply(square, square)
        bits >>= 1
    return power
