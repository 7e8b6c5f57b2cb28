"""Detections accepted while the database is away, in one SQLite file of this service."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest.errors import StoreUnavailable
from ingest.storage.documents import Document, decoded, encoded, key_bytes

log = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spool (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    document BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS refused (id BLOB PRIMARY KEY, document BLOB NOT NULL)
"""
_INSERT = "INSERT OR IGNORE INTO spool (id, document) VALUES (?, ?)"
_OLDEST = "SELECT number, document FROM spool WHERE number > ? ORDER BY number LIMIT ?"
_ONE = "SELECT document FROM spool WHERE number = ?"
_BETWEEN = "SELECT count(*) FROM spool WHERE number > ? AND number <= ?"
_SET_ASIDE = "INSERT OR IGNORE INTO refused SELECT id, document FROM spool WHERE number = ?"
_DELETE = "DELETE FROM spool WHERE number = ?"
_DELETE_PASSED = "DELETE FROM spool WHERE number <= ?"
# What opening a file on a full disk may end in; anything else is a mistake in the settings.
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class Spool:
    """A bounded queue that survives the process; on disk before `append` returns.

    It drains on a full disk as well, where not even a deletion can be written: what was passed on
    is remembered, and when that is everything, the file is made anew.
    """

    def __init__(self, path: Path, max_detections: int) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._max_detections = max_detections
        self._lock = threading.Lock()
        self._waiting = 0
        self._passed = 0  # up to this number all need not wait any more
        self._open_file: sqlite3.Connection | None = None
        try:
            self._file()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
                raise
            log.warning("no room for the spool yet: %s", error)

    def __len__(self) -> int:
        """Return how many detections wait, as far as the file could be read."""
        return self._waiting

    @property
    def empty(self) -> bool:
        """Tell whether it is certain that nothing waits."""
        return self._open_file is not None and not self._waiting

    def append(self, documents: list[Document]) -> None:
        """Keep all of them or none; a repeat is kept once. Raises StoreUnavailable."""
        rows = [(key_bytes(document), encoded(document)) for document in documents]
        with self._lock:
            if self._waiting + len(rows) > self._max_detections:
                raise StoreUnavailable(f"the spool is full: {self._waiting} detections wait")
            try:
                with self._transaction() as file:
                    added = file.executemany(_INSERT, rows).rowcount
            except sqlite3.Error as error:  # the disk is full, or worse
                raise StoreUnavailable(f"the spool takes nothing: {error}") from error
            self._waiting += added

    def oldest(self, limit: int) -> list[tuple[int, Document]]:
        """Return the detections that wait longest, each with its number."""
        with self._lock:
            rows = self._file().execute(_OLDEST, (self._passed, limit)).fetchall()
        return [(number, decoded(document)) for number, document in rows]

    def remove(self, numbers: list[int]) -> None:
        """Forget detections that need not wait any more."""
        if not numbers:
            return
        with self._lock:
            try:
                with self._transaction() as file:
                    file.execute(_DELETE_PASSED, (self._passed,))
                    gone = file.executemany(_DELETE, [(number,) for number in numbers]).rowcount
                self._passed = 0
            except sqlite3.Error:
                if not self._are_next(numbers):
                    raise
                self._passed, gone = max(numbers), len(numbers)
            self._waiting -= gone
            if self._passed and not self._waiting:
                self._start_over()

    def set_aside(self, numbers: list[int]) -> None:
        """Keep what MongoDB refuses where a person finds it: the table `refused`, or the log."""
        if not numbers:
            return
        with self._lock:
            try:
                with self._transaction() as file:
                    file.executemany(_SET_ASIDE, [(number,) for number in numbers])
            except sqlite3.Error:  # they must not hold up what waits behind them
                for number in numbers:
                    found = self._file().execute(_ONE, (number,)).fetchone()
                    log.exception("no room to set aside %s", decoded(found[0]))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._open_file:
                self._open_file.close()
                self._open_file = None

    def _file(self) -> sqlite3.Connection:
        """Return the file, opened now if the disk had no room for it so far."""
        if self._open_file:
            return self._open_file
        file = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            # The log is forced to disk with every transaction (FULL), the file itself seldom.
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = FULL")
            file.executescript(_SCHEMA)
            self._waiting = int(file.execute("SELECT count(*) FROM spool").fetchone()[0])
        except BaseException:
            file.close()
            raise
        self._passed = 0
        self._open_file = file
        return file

    def _are_next(self, numbers: list[int]) -> bool:
        """Tell whether nothing before the last of these waits but they themselves."""
        between = self._file().execute(_BETWEEN, (self._passed, max(numbers))).fetchone()[0]
        return bool(between == len(numbers))

    def _start_over(self) -> None:
        """Give a full disk its room back: the file has only what was passed on."""
        file = self._file()
        if file.execute("SELECT count(*) FROM refused").fetchone()[0]:
            return
        file.close()
        self._open_file = None
        # SQLite does not take a log without its file for one of the next file.
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        self._passed = 0

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        file = self._file()
        file.execute("BEGIN IMMEDIATE")
        try:
            yield file
            file.execute("COMMIT")
        except BaseException:
            if file.in_transaction:
                file.execute("ROLLBACK")
            raise
