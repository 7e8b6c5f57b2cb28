"""Detections accepted while the database is away, in one SQLite file of this service."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bson

from ingest.errors import StoreUnavailable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spool (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    document BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS refused (id BLOB PRIMARY KEY, document BLOB NOT NULL)
"""
_INSERT = "INSERT OR IGNORE INTO spool (id, document) VALUES (?, ?)"
_SET_ASIDE = "INSERT OR IGNORE INTO refused SELECT id, document FROM spool WHERE number = ?"
_DELETE = "DELETE FROM spool WHERE number = ?"


class Spool:
    """A bounded queue that survives the process; on disk before `append` returns."""

    def __init__(self, path: Path, max_detections: int) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._max_detections = max_detections
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # The log is forced to disk with every transaction (FULL), the file itself seldom.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.executescript(_SCHEMA)
        self._waiting = int(self._file.execute("SELECT count(*) FROM spool").fetchone()[0])

    def __len__(self) -> int:
        """Return how many detections wait."""
        return self._waiting

    def append(self, documents: list[dict[str, Any]]) -> None:
        """Keep all of them or none; a repeat is kept once. Raises StoreUnavailable."""
        rows = [(document["_id"].binary, bson.encode(document)) for document in documents]
        with self._lock:
            if self._waiting + len(rows) > self._max_detections:
                raise StoreUnavailable(f"the spool is full: {self._waiting} detections wait")
            try:
                with self._transaction():
                    added = self._file.executemany(_INSERT, rows).rowcount
            except sqlite3.Error as error:  # the disk is full, or worse
                raise StoreUnavailable(f"the spool takes nothing: {error}") from error
            self._waiting += added

    def oldest(self, limit: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the detections that wait longest, each with its number."""
        query = "SELECT number, document FROM spool ORDER BY number LIMIT ?"
        with self._lock:
            rows = self._file.execute(query, (limit,)).fetchall()
        return [(number, bson.decode(document)) for number, document in rows]

    def remove(self, numbers: list[int]) -> None:
        """Forget detections that need not wait any more."""
        if not numbers:
            return
        with self._lock:
            with self._transaction():
                gone = self._file.executemany(_DELETE, [(number,) for number in numbers]).rowcount
            self._waiting -= gone

    def set_aside(self, numbers: list[int]) -> None:
        """Keep detections that MongoDB refuses where a person finds them: the table `refused`."""
        if not numbers:
            return
        with self._lock, self._transaction():
            self._file.executemany(_SET_ASIDE, [(number,) for number in numbers])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise
