"""Everybody's detections of the last minutes as the text of the answer, in compressed blocks."""

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ingest.batcher import Batcher
from ingest.histories.blocks import BLOCK_ROWS, Block, Row
from ingest.histories.gzip_join import QUICK
from ingest.histories.time_window import CLOSING, OPENING, Window
from ingest.storage.detections import Detections

WINDOW_SECONDS = 15 * 60
# What a phone's clock is ahead at most to be shown. What is dated further ahead comes in when its
# time has come, and leaves like everything else: it would stay for a day, and a crowd of it too.
AHEAD_SECONDS = 60
# How many beginnings and ends of rows are kept while they are read: 1 MiB.
MAX_ENCODED = 2000


class LastMinutes:
    """Reads them once for all who ask at the same moment."""

    def __init__(self, detections: Detections) -> None:
        self._detections = detections
        self._pool = ThreadPoolExecutor(1, "last-minutes")
        self._reads: Batcher[None, tuple[Window, str]] = Batcher(self._read, self._pool)

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    def read(self) -> tuple[Window, str]:
        """Return them, and an ETag of the text. StoreUnavailable."""
        return self._reads.call(None)

    def _read(self, calls: list[None]) -> list[tuple[Window, str] | Exception]:
        digest = hashlib.blake2b(OPENING, digest_size=12)
        blocks = []
        rows = self._rows(int(time.time()))
        while some := list(itertools.islice(rows, BLOCK_ROWS)):
            block = Block(some)
            digest.update(b"," + block.inflate() if blocks else block.inflate())
            block.pack(QUICK)
            block.text = None
            blocks.append(block)
        digest.update(CLOSING)
        return [(Window(blocks, None), digest.hexdigest())] * len(calls)

    def _rows(self, now: int) -> Iterator[Row]:
        """Yield each row as JSON; what repeats in them is encoded once."""
        encoded: dict[tuple[Any, ...], tuple[str, str]] = {}
        found = self._detections.list_recent(now - WINDOW_SECONDS, now + AHEAD_SECONDS)
        for staff_id, level, location, timestamp, rssi, mac in found:
            texts = encoded.get(key := (staff_id, level, location, mac))
            if texts is None:
                if len(encoded) >= MAX_ENCODED:
                    encoded.clear()
                first = {"staff_id": staff_id, "level": level, "location": location}
                texts = encoded[key] = _compact(first)[:-1], _compact({"mac": mac})[1:]
            row = f'{texts[0]},"timestamp":{timestamp},"rssi":{rssi},{texts[1]}'
            yield timestamp, row.encode()


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
