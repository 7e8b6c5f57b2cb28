"""A staff member's cached history, and one window of it as an answer."""

from collections.abc import Iterable, Iterator

from ingest.histories.blocks import BLOCK_ROWS, Block, Part, Row
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


class Window:
    """What lies between two timestamps; `mark` names this state of it (None: nothing does)."""

    def __init__(self, blocks: list[Block | Part], mark: Mark | None, counted_at: float) -> None:
        self._blocks = blocks
        self.counted_at = counted_at
        self.rows = sum(block.rows for block in blocks)
        commas = max(0, len(blocks) - 1)
        # Of the body, not compressed.
        self.length = len(OPENING + CLOSING) + commas + sum(block.length for block in blocks)
        self.etag = None if mark is None else f'W/"{mark.name:x}-{self.rows:x}-{self.length:x}"'
        self._text: bytes | None = None
        self._gzip: list[bytes] | None = None

    def text(self) -> Iterable[bytes]:
        """Return the body: a short one whole, which is cached; a long one block by block."""
        if self.length > WHOLE_BYTES:
            return self._pieces()
        if self._text is None:
            self._text = b"".join(self._pieces())
        return [self._text]

    def gzip(self) -> list[bytes]:
        """Return the parts of the body as one gzip member, of the blocks as they are cached."""
        if self._gzip is None:
            self._gzip = joined(OPENING, self._blocks, CLOSING, self.length)
        return self._gzip

    def gzip_pieces(self) -> Iterator[bytes]:
        """Yield those parts; who has not had all of them holds this window."""
        yield from self.gzip()

    def _pieces(self) -> Iterator[bytes]:
        before = OPENING
        for block in self._blocks:
            yield before
            yield block.inflate()
            before = b","
        yield CLOSING if self._blocks else OPENING + CLOSING


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

    def window(self, wanted: TimeRange) -> Window:
        """Return what lies between two timestamps."""
        spans = ((block, *block.span(wanted.start, wanted.end)) for block in self.blocks)
        parts = [block.part(low, high) for block, low, high in spans if high > low]
        return Window(parts, self.mark, self.counted_at)

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
