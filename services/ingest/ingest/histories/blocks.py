"""Consecutive rows of a history as the text of the answer, compressed."""

import bisect
import itertools
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ingest.histories.gzip_join import QUICK, THOROUGH, deflate, multiply, shift
from ingest.rules.request_parameters import MAX_UNIX_SECONDS

# Rows of a block: the unit that is compressed, and decompressed for a part of it.
BLOCK_ROWS = 512

Row = tuple[int, bytes]  # the timestamp, and the text of the answer


class Block:
    """Consecutive rows of a history, newest first. Never changes."""

    __slots__ = ("_ages", "_crc", "_ends", "_newest", "_packed", "_shift", "text")

    def __init__(self, timestamps: list[int], text: bytes, lengths: Iterable[int]) -> None:
        """`lengths`: of the text of each row, with the comma that parts it from the next."""
        self._newest, oldest = timestamps[0], timestamps[-1]
        size = "I" if self._newest - oldest < 2**32 else "Q"
        self._ages = array(size, [self._newest - timestamp for timestamp in timestamps])
        ends = itertools.accumulate(lengths, initial=-1)
        self._ends = array("I", itertools.islice(ends, 1, None))
        self.text: bytes | None = text
        self._packed: bytes | None = None
        self._crc = self._shift = 0

    @property
    def rows(self) -> int:
        """Return how many rows these are."""
        return len(self._ages)

    @property
    def oldest(self) -> int:
        """Return the last timestamp."""
        return self._newest - self._ages[-1]

    @property
    def length(self) -> int:
        """Return the bytes of the text."""
        return int(self._ends[-1])

    @property
    def size(self) -> int:
        """Return about how many bytes this takes besides an inflated text."""
        text = len(self._packed) if self._packed is not None else self.length
        return text + 400 + (self._ages.itemsize + self._ends.itemsize) * self.rows

    def pack(self, level: int) -> bytes:
        """Compress the text, and return that."""
        text = self.inflate()
        packed = deflate(text, level)
        self._crc = zlib.crc32(text)
        self._packed = packed  # last: another thread may look
        return packed

    def packed(self) -> "Block":
        """Keep the text compressed alone, and return this."""
        self.pack(THOROUGH)
        self.text = None
        return self

    def deflated(self, crc: int) -> tuple[bytes, int]:
        """Return the compressed text, and the checksum of what had `crc` with the text after it."""
        packed = self._packed or self.pack(QUICK)
        self._shift = self._shift or shift(self.length)
        return packed, multiply(self._shift, crc) ^ self._crc

    def inflate(self) -> bytes:
        """Return the text."""
        if self.text is not None:
            return self.text
        return zlib.decompressobj(-15).decompress(self._packed or b"")

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions of the rows between two timestamps."""
        if end >= self._newest and start <= self.oldest:
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
    """A few rows of a block."""

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
        return deflate(text, QUICK), zlib.crc32(text, crc)


def blocks_of(rows: Iterable[Row]) -> tuple[Block, ...]:
    """Return rows as blocks, as `packed` does."""
    return packed(in_blocks(rows))


def in_blocks(rows: Iterable[Row]) -> Iterator[Block]:
    """Yield rows as blocks that are not compressed."""
    source = iter(rows)
    while group := list(itertools.islice(source, BLOCK_ROWS)):
        texts = [text for _, text in group]
        yield Block(
            [timestamp for timestamp, _ in group],
            b",".join(texts),
            [len(text) + 1 for text in texts],
        )


def since(floor: int, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return blocks without what is before a time."""
    kept = list(blocks)
    while kept and kept[-1].oldest < floor:
        last = kept.pop()
        rows = last.split(0, last.span(floor, MAX_UNIX_SECONDS)[1])
        kept += [block.packed() for block in in_blocks(rows)]
    return tuple(kept)


def packed(blocks: Iterable[Block], room: float = math.inf) -> tuple[Block, ...]:
    """Compress blocks; less than one whole block stays as it is, and may grow.

    Once they take more than `room` bytes no more are asked for.
    """
    kept: list[Block] = []
    for block in blocks:
        kept.append(block)
        if len(kept) > 1 or block.rows == BLOCK_ROWS:
            block.packed()
        room -= block.size
        if room < 0:
            break
    return tuple(kept)


def grown(rows: Iterator[Row]) -> tuple[Block, ...]:
    """Return the newest rows as blocks, so that the first is the short one that grows."""
    newest = list(itertools.islice(rows, 2 * BLOCK_ROWS))
    if not BLOCK_ROWS <= len(newest) < 2 * BLOCK_ROWS:
        return blocks_of(itertools.chain(newest, rows))
    tail = len(newest) - BLOCK_ROWS
    return blocks_of(newest[:tail]) + blocks_of(newest[tail:])
