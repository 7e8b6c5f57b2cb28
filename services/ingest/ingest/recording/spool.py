"""Detections accepted while the database is away, in one SQLite file of this service."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.erasures import NOBODY, Erasures
from ingest.errors import StoreUnavailable
from ingest.recording import rescue
from ingest.storage.detections.documents import (
    DamagedDocument,
    Document,
    decoded,
    encoded,
    key_bytes,
    received_seconds,
    staff_ids_within,
)

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
# Rows, not entries of the index: those may be damaged.
_COUNTS = "SELECT (SELECT count(*) FROM spool NOT INDEXED), (SELECT count(*) FROM refused)"
_PUT_ASIDE = "INSERT OR IGNORE INTO refused SELECT id, document FROM spool WHERE number = ?"
_DELETE = "DELETE FROM spool WHERE number = ?"
_DELETE_PASSED = "DELETE FROM spool WHERE number <= ?"
_FORGET = "DELETE FROM {} WHERE rowid = ?"
ALL = "SELECT rowid, document FROM {} WHERE rowid > ? ORDER BY rowid LIMIT ?"
# How many rows are looked at while nobody can append: 5 ms.
LOOKED_AT = 500
# What opening a file on a full disk may end in; anything else is a mistake in the settings.
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class Spool:
    """A bounded queue that survives the process; on disk before `append` returns.

    It drains on a full disk as well, where not even a deletion can be written: what was passed on
    is remembered, and when that is everything, the file is made anew. Damage loses only what is
    damaged: a row has a checksum, and a file that SQLite cannot read is replaced (`rescue.py`).
    """

    def __init__(self, path: Path, max_detections: int) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._max_detections = max_detections
        self._lock = threading.Lock()
        self._waiting = 0
        self._refused = 0
        self._passed = 0  # up to this number all need not wait any more
        self._skipped = 0  # up to this number all that wait do so for somebody who does not answer
        self._replaced = False  # numbers that were read before are those of another file
        self._forgotten = NOBODY  # the list of erasures of which nothing is here any more
        self._open_file: sqlite3.Connection | None = None
        try:
            self._file()
        except sqlite3.Error as error:
            if rescue.primary_code(error) not in _NO_ROOM:
                raise OSError(f"the spool {path} cannot be opened: {error}") from error
            log.warning("no room for the spool yet: %s", error)

    def __len__(self) -> int:
        """Return how many detections wait, as far as the file could be read."""
        return self._waiting

    @property
    def empty(self) -> bool:
        """Tell whether it is certain that nothing waits."""
        return self._open_file is not None and not self._waiting

    @property
    def set_aside(self) -> int:
        """Return how many detections, and files whole, were damaged or refused and kept aside."""
        return self._refused + len(rescue.files_set_aside(self._path))

    @property
    def room(self) -> int:
        """Return how many more may wait."""
        return max(0, self._max_detections - self._waiting)

    def waits_since(self) -> float | None:
        """Return when what waits longest came, in unix seconds; None: nothing waits.

        Raises sqlite3.Error, OSError, DamagedDocument: it cannot be read.
        """
        if not self._waiting:
            return None
        with self._access() as file:
            row = file.execute(_OLDEST, (self._passed, 1)).fetchone()
        return received_seconds(decoded(row[1])) if row else None

    def append(self, documents: list[Document]) -> None:
        """Keep all of them or none; a repeat is kept once. Raises StoreUnavailable."""
        rows = [(key_bytes(document), encoded(document)) for document in documents]
        try:
            with self._access() as file:
                if self._waiting + len(rows) > self._max_detections:
                    raise StoreUnavailable(f"the spool is full: {self._waiting} detections wait")
                with _transaction(file):
                    added = file.executemany(_INSERT, rows).rowcount
                self._waiting += added
        except (sqlite3.Error, OSError) as error:  # the disk is full, or worse
            raise StoreUnavailable(f"the spool takes nothing: {error}") from error

    def oldest(self, limit: int) -> list[tuple[int, Document | None]]:
        """Return what waits longest and is not skipped, by number; None: it is damaged."""
        with self._access() as file:
            self._replaced = False
            after = max(self._passed, self._skipped)
            rows = file.execute(_OLDEST, (after, limit)).fetchall()
        return [(number, _document(number, stored)) for number, stored in rows]

    def skip(self, number: int) -> None:
        """Pass over what waits up to a number, until `rewind`."""
        self._skipped = 0 if self._replaced else number

    def rewind(self) -> None:
        """Begin with what waits longest again."""
        self._skipped = 0

    def remove(self, numbers: list[int]) -> None:
        """Forget detections that need not wait any more."""
        if not numbers:
            return
        with self._access() as file:
            if self._replaced:  # what was saved of them is stored once more, which does no harm
                return
            try:
                with _transaction(file):
                    file.execute(_DELETE_PASSED, (self._passed,))
                    gone = file.executemany(_DELETE, [(number,) for number in numbers]).rowcount
                self._passed = 0
            except sqlite3.Error:
                if not self._are_next(file, numbers):
                    raise
                self._passed, gone = max(numbers), len(numbers)
            self._waiting -= gone
            if self._passed and not self._waiting:
                self._start_over(file)

    def put_aside(self, numbers: list[int]) -> None:
        """Keep what is damaged or refused where a person finds it: the table `refused`, or the log.

        It is to be removed afterwards.
        """
        if not numbers:
            return
        with self._access() as file:
            if self._replaced:
                return
            try:
                with _transaction(file):
                    file.executemany(_PUT_ASIDE, [(number,) for number in numbers])
            except sqlite3.Error:  # they must not hold up what waits behind them
                for number in numbers:
                    (stored,) = file.execute(_ONE, (number,)).fetchone()
                    log.exception("no room to put aside: %r", stored)
            self._refused += len(numbers)

    def forget(self, erasures: Erasures) -> None:
        """Delete what is here of the forgotten, with its bytes; once for each list.

        Raises sqlite3.Error: not all of it is deleted.
        """
        if erasures is self._forgotten:
            return
        for table in ("spool", "refused"):
            after = 0
            while rows := self._looked_at(table, after, erasures):
                after = rows[-1][0]
        rescue.forget(self._path, erasures)
        with self._access() as file:
            if not self._waiting and not self._refused:
                file.execute("VACUUM")  # what an older release deleted was not written over
            # What was deleted stands in the log as it was.
            is_busy = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not is_busy:
            self._forgotten = erasures

    def _looked_at(self, table: str, after: int, erasures: Erasures) -> list[tuple[int, bytes]]:
        """Delete what is forgotten of some rows, and return them."""
        with self._access() as file:
            rows = file.execute(ALL.format(table), (after, LOOKED_AT)).fetchall()
            gone = [(number,) for number, stored in rows if _is_forgotten(stored, erasures)]
            if gone:
                with _transaction(file):
                    file.executemany(_FORGET.format(table), gone)
                if table == "refused":
                    self._refused -= len(gone)
                else:
                    self._waiting -= sum(number > self._passed for (number,) in gone)
        return rows

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._open_file:
                self._open_file.close()
                self._open_file = None

    def delete(self) -> None:
        """Close and delete the file, in which nothing is left."""
        self.close()
        self._unlink()

    @contextmanager
    def _access(self) -> Iterator[sqlite3.Connection]:
        """Hold the file; one that proves to be damaged is replaced before the next access."""
        with self._lock:
            file = self._file()
            try:
                yield file
            except sqlite3.Error as error:
                if rescue.is_damage(error, self._path):
                    file.close()
                    self._open_file = None
                    rescue.move_away(self._path, str(error))
                raise

    def _file(self) -> sqlite3.Connection:
        """Return the file, opened now if it is not open: the first time, or it was replaced."""
        if self._open_file:
            return self._open_file
        rescue.finish_move(self._path)
        try:
            file = self._opened()
        except sqlite3.Error as error:
            if not rescue.is_damage(error, self._path):
                raise
            rescue.move_away(self._path, str(error))
            file = self._opened()
        try:
            rescue.save_rows(self._path, file)
            self._waiting, self._refused = file.execute(_COUNTS).fetchone()
        except BaseException:
            file.close()
            raise
        self._passed = self._skipped = 0
        self._replaced = True
        self._open_file = file
        return file

    def _opened(self) -> sqlite3.Connection:
        file = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            file.text_factory = bytes  # what a flipped bit makes of a document
            # The log is forced to disk with every transaction (FULL), the file itself throttle.
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = FULL")
            file.execute("PRAGMA secure_delete = ON")  # whoever is forgotten leaves no bytes
            rescue.check(file)
            file.executescript(_SCHEMA)
        except BaseException:
            file.close()
            raise
        return file

    def _are_next(self, file: sqlite3.Connection, numbers: list[int]) -> bool:
        """Tell whether nothing before the last of these waits but they themselves."""
        between = file.execute(_BETWEEN, (self._passed, max(numbers))).fetchone()[0]
        return bool(between == len(numbers))

    def _start_over(self, file: sqlite3.Connection) -> None:
        """Give a full disk its room back: the file has only what was passed on."""
        if file.execute("SELECT count(*) FROM refused").fetchone()[0]:
            return
        file.close()
        self._open_file = None
        self._unlink()
        self._passed = 0

    def _unlink(self) -> None:
        # SQLite does not take a log without its file for one of the next file.
        for suffix in rescue.SUFFIXES:
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise


def _document(number: int, stored: bytes) -> Document | None:
    try:
        return decoded(stored)
    except DamagedDocument:
        log.exception("detection %d of the spool is damaged and set aside", number)
        return None


def _is_forgotten(stored: bytes, erasures: Erasures) -> bool:
    """Tell whether it is of somebody who was forgotten since; of what is damaged, ever."""
    try:
        row = decoded(stored)
    except DamagedDocument:
        ids = (staff_id for staff_id, _ in staff_ids_within(stored))
        return any(erasures.until(staff_id) > 0 for staff_id in ids)
    return erasures.covers(row["staff_id"], received_seconds(row))
