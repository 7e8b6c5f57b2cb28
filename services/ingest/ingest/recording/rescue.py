"""What becomes of a damaged spool file: it is set aside whole, and its rows are saved."""

import logging
import mmap
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from common.erasures import Erasures
from ingest.storage.detections.documents import staff_ids_within

log = logging.getLogger(__name__)

# The files of one database.
SUFFIXES = ("", "-wal", "-shm")
# What follows the name of one that was moved away, and a number when nothing is left to save.
_DAMAGED = ".damaged"
# How many rows are read at once, and how many reads may fail: pages near the root hide many rows.
ROWS, MAX_FAILURES = 100, 100_000

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNREADABLE = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ}
# How far the numbers of rows go: one of the two pages that tell may be damaged.
_NEWEST = (
    "SELECT seq FROM sqlite_sequence WHERE name = 'spool'",
    "SELECT max(number) FROM spool",
)
_BETWEEN = """
SELECT number, id, document FROM spool WHERE number > ? AND number <= ?
ORDER BY number DESC LIMIT ?
"""
_SAVE = "INSERT OR IGNORE INTO spool (number, id, document) VALUES (?, ?, ?)"


class DamagedFile(sqlite3.DatabaseError):
    """SQLite opens the file, but finds faults in it."""


def check(file: sqlite3.Connection) -> None:
    """Read the whole file, a tenth of a second for 200,000 rows. Raises DamagedFile."""
    (report,) = file.execute("PRAGMA quick_check(1)").fetchone()
    if report != b"ok":
        raise DamagedFile(report.decode(errors="replace"))


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's code of an error, without what details it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: sqlite3.Error, path: Path) -> bool:
    """Tell whether an error is the file's own, which another file would not have."""
    if isinstance(error, DamagedFile) or primary_code(error) in _DAMAGE:
        return True
    if getattr(error, "sqlite_errorcode", 0) in _UNREADABLE:
        return True
    files = [_beside(path, suffix) for suffix in SUFFIXES]
    return any(
        os.path.lexists(file) and not (file.is_file() and os.access(file, os.R_OK | os.W_OK))
        for file in files
    )


def move_away(path: Path, reason: str) -> None:
    """Move a file to where `save_rows` finds it. Raises OSError: it cannot be moved."""
    log.error("the spool %s is damaged and replaced: %s", path, reason)
    if os.path.lexists(_beside(path, _DAMAGED)):  # another one, that could not be saved so far
        _set_aside(path)
    _move(path, _beside(path, _DAMAGED))


def finish_move(path: Path) -> None:
    """Do what a crash kept `move_away` from: SQLite would delete a log without its file."""
    if os.path.lexists(_beside(path, _DAMAGED)) and not path.exists():
        _move(path, _beside(path, _DAMAGED))


def save_rows(path: Path, file: sqlite3.Connection) -> None:
    """Copy what can be read of the file that was moved away, and set that aside for good."""
    damaged = _beside(path, _DAMAGED)
    if not os.path.lexists(damaged):
        return
    file.execute("BEGIN IMMEDIATE")
    saved = sum(file.executemany(_SAVE, rows).rowcount for rows in _readable(damaged))
    file.execute("COMMIT")
    aside = _set_aside(path)
    log.error("%d detections were saved of a damaged spool, which is set aside: %s", saved, aside)


def files_set_aside(path: Path) -> list[Path]:
    """Return the damaged files that wait for a person to look at them."""
    files = path.parent.glob(f"{path.name}{_DAMAGED}-*")
    return [file for file in files if file.name.rpartition("-")[2].isdecimal()]


def forget(path: Path, erasures: Erasures) -> None:
    """Write over the staff ids of the forgotten in the damaged files: nobody opens these."""
    for aside in files_set_aside(path):
        for suffix in SUFFIXES:
            part = _beside(aside, suffix)
            if not part.is_file() or not part.stat().st_size:
                continue
            with part.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
                found = list(staff_ids_within(content))
                for staff_id, where in found:
                    if erasures.until(staff_id) > 0:
                        content[where] = b"\xff" * (where.stop - where.start)  # nobody's id


def _readable(damaged: Path) -> Iterator[list[tuple[int, bytes, bytes]]]:
    """Yield the rows that can be read, newest first; a range that has a fault is halved."""
    try:
        file = sqlite3.connect(damaged, isolation_level=None)
    except sqlite3.Error:
        return
    file.text_factory = bytes
    failures = 0
    try:
        ranges = [(0, _newest(file))]
        while ranges and failures < MAX_FAILURES:
            low, high = ranges.pop()
            try:
                rows = file.execute(_BETWEEN, (low, high, ROWS)).fetchall()
            except sqlite3.Error:
                failures += 1
                middle = (low + high) // 2
                if low < middle:
                    ranges += [(low, middle), (middle, high)]
                continue
            yield rows
            if len(rows) == ROWS:
                ranges.append((low, rows[-1][0] - 1))
    finally:
        file.close()


def _newest(file: sqlite3.Connection) -> int:
    numbers = [0]
    for query in _NEWEST:
        try:
            # Else SQLite reads nothing of a file that is shorter than it should be.
            file.execute("PRAGMA writable_schema = ON")
            numbers += [one for (one,) in file.execute(query) if isinstance(one, int)]
        except sqlite3.Error:
            continue
    return max(numbers)


def _set_aside(path: Path) -> Path:
    taken = {file.name for file in files_set_aside(path)}
    number = 1
    while f"{path.name}{_DAMAGED}-{number}" in taken:
        number += 1
    aside = _beside(path, f"{_DAMAGED}-{number}")
    _move(_beside(path, _DAMAGED), aside)
    return aside


def _move(source: Path, target: Path) -> None:
    for suffix in SUFFIXES:
        one = _beside(source, suffix)
        if os.path.lexists(one):
            one.rename(_beside(target, suffix))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
