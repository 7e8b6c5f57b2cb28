"""A staff member's cached history, and one window of it as an answer."""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ingest.histories.blocks import BLOCK_ROWS, Block, Part, Row, since
from ingest.histories.gzip_join import joined
from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.states import Mark

# A cached history that was read, or counted, so long ago is counted: its state proves that nothing
# came, not that nothing was deleted, by an operator or a TTL index. It is to be seen in a minute.
COUNT_SECONDS = 45.0

# How long a body may be to be cached as it was sent.
WHOLE_BYTES = 256 * 1024

# What a history takes besides its blocks, about.
OWN_BYTES = 400

OPENING, CLOSING = b'{"location":[', b"]}\n"


Older = Callable[[], Iterator[Block]]


class Window:
    """What lies between two timestamps; `mark` names this state of it (None: nothing does).

    Of a long one only the newest is here: `older` reads the rest while it is sent, once. What was
    sent of it is let go.
    """

    def __init__(
        self,
        blocks: list[Block | Part],
        mark: Mark | None,
        counted_at: float,
        older: Older | None = None,
    ) -> None:
        self._blocks = blocks
        self._older = older
        self.counted_at = counted_at
        self.rows = sum(block.rows for block in blocks)
        commas = max(0, len(blocks) - 1)
        # Of the body, not compressed, as far as it is here.
        self.length = len(OPENING + CLOSING) + commas + sum(block.length for block in blocks)
        self.etag = None if mark is None else f'W/"{mark.name:x}-{self.rows:x}-{self.length:x}"'
        if older:  # how much that is, nobody knows yet
            self.etag = None
        self._text: bytes | None = None
        self._gzip: list[bytes] | None = None

    @property
    def is_long(self) -> bool:
        """Tell whether it is read while it is sent."""
        return self._older is not None

    def text(self) -> Iterable[bytes]:
        """Return the body: a short one whole, which is cached; others block by block."""
        if self.is_long or self.length > WHOLE_BYTES:
            return self._pieces()
        if self._text is None:
            self._text = b"".join(self._pieces())
        return [self._text]

    def gzip(self) -> list[bytes]:
        """Return the parts of the body as one gzip member, of the blocks as they are cached.

        Not of a long one.
        """
        if self._gzip is None:
            self._gzip = list(joined(OPENING, self._blocks, CLOSING))
        return self._gzip

    def gzip_pieces(self) -> Iterator[bytes]:
        """Yield those parts; who has not had all of them holds this window."""
        yield from joined(OPENING, self._every(), CLOSING) if self.is_long else self.gzip()

    def _pieces(self) -> Iterator[bytes]:
        before = OPENING
        for block in self._every():
            yield before
            yield block.inflate()
            before = b","
        yield CLOSING if before == b"," else OPENING + CLOSING

    def _every(self) -> Iterator[Block | Part]:
        if self._older is None:
            yield from self._blocks
            return
        while self._blocks:
            yield self._blocks.pop(0)
        yield from self._older()


class History:
    """All detections of one staff member from `floor` on, newest first, as of a state."""

    __slots__ = ("blocks", "counted_at", "floor", "mark", "size")

    def __init__(
        self, mark: Mark | None, floor: int, blocks: tuple[Block, ...], counted_at: float
    ) -> None:
        self.mark = mark  # None: nothing names it
        self.floor = floor
        self.blocks = blocks  # the first may be a short one, not compressed: the tail
        self.counted_at = counted_at  # on the monotonic clock: nothing was deleted before
        stamps = len(mark.stamps) if mark else 0
        self.size = OWN_BYTES + 8 * stamps + sum(block.size for block in blocks)

    def window(
        self, wanted: TimeRange, read: Callable[[TimeRange], Iterator[Block]] | None = None
    ) -> Window:
        """Return what lies between two timestamps; `read` has what is older than the floor."""
        start = max(wanted.start, self.floor)
        spans = ((block, *block.span(start, wanted.end)) for block in self.blocks)
        parts = [block.part(low, high) for block, low, high in spans if high > low]
        if not read or start == wanted.start:
            return Window(parts, self.mark, self.counted_at)
        rest = wanted._replace(end=min(wanted.end, self.floor - 1))
        return Window(parts, self.mark, self.counted_at, partial(read, rest))

    def newest(self, room: int) -> "History":
        """Return the newest blocks that take no more than so many bytes."""
        sizes = list(itertools.accumulate(block.size for block in self.blocks))
        count = bisect.bisect_right(sizes, room)
        if count == len(sizes):
            return self
        kept = self.blocks[:count]
        floor = kept[-1].oldest + 1  # this second may have more than these
        return History(self.mark, floor, since(floor, kept), self.counted_at)

    def rows(self, start: int, end: int) -> int:
        """Return how many rows lie between two timestamps."""
        spans = (block.span(start, end) for block in self.blocks)
        return sum(high - low for low, high in spans)

    def reaching_before(self, since: int) -> tuple[Block, ...]:
        """Return the blocks that have something older than `since`."""
        return tuple(block for block in self.blocks if block.span(0, since - 1)[0] < block.rows)

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
