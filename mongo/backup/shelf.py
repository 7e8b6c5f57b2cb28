"""A shelf: where backups are kept, each under a name of its own, and which of them are kept."""

import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Protocol

from mongo.backup.errors import BackupError

MANIFEST = "manifest.json"  # written last: what has none is no backup
NAME = "%Y-%m-%dT%H-%M-%SZ"
PERIODS = ("%Y-%m-%d", "%G-%V", "%Y-%m")  # days, weeks, months
KEPT = (7, 4, 12)  # of them, where a schedule makes backups and nobody says otherwise


class Files(Protocol):
    """The files of one backup; its text is where it is."""

    @property
    def name(self) -> str:
        """The backup's, on its shelf."""

    def write(self, file: str, content: bytes) -> None:
        """Have a new file, for good. Raises BackupError, OSError."""

    def read(self, file: str) -> bytes:
        """Return a file. Raises BackupError."""


class Shelf(Protocol):
    """Where backups are kept; its text is where that is."""

    def being_made(self) -> AbstractContextManager[Files]:
        """Give the place of a new backup, which has the time as its name.

        What earlier ones left that were interrupted is deleted. Raises BackupError.
        """

    def whole(self) -> list[str]:
        """Return the names of the whole backups, the oldest first."""

    def files(self, name: str) -> Files:
        """Return the files of a backup."""

    def delete(self, name: str) -> None:
        """Delete a backup; wherever that is cut, it is none, and the next one goes on."""

    def locked(self) -> AbstractContextManager[object]:
        """Be alone at work here, as far as that can be told. Raises BackupError."""


def new_name(taken: Collection[str]) -> str:
    """Return what a backup is called that is made now: the second, or the next one that is free."""
    while (name := datetime.now(UTC).strftime(NAME)) in taken:
        time.sleep(0.1)
    return name


def time_of(name: str) -> datetime | None:
    """Return when a backup was made, from its name; None for another name."""
    with suppress(ValueError):
        return datetime.strptime(f"{name} +0000", f"{NAME} %z")
    return None


def newest(shelf: Shelf) -> str:
    """Return the name of the newest backup. Raises BackupError."""
    names = shelf.whole()
    if not names:
        raise BackupError(f"there is no whole backup in {shelf}")
    return names[-1]


def prune(shelf: Shelf, counts: Sequence[int], made: str) -> list[str]:
    """Delete the backups that need not be kept beside one just made; return their names."""
    names = shelf.whole()
    keep = kept(names, counts, made)
    gone = [name for name in names if name not in keep]
    for name in gone:
        shelf.delete(name)
    return gone


def kept(names: Iterable[str], counts: Sequence[int], made: str) -> Collection[str]:
    """Return one that was just made, and the newest of each of so many days, weeks and months.

    Only those that have one count, so nothing goes because time went by. What has a later name than
    the one just made is of a clock that was wrong, then or now: it stays, and counts for nothing.
    """
    newest_first = sorted(names, reverse=True)
    keep = {made} | {name for name in newest_first if name > made}
    for period, count in zip(PERIODS, counts, strict=True):
        newest_of: dict[str, str] = {}
        for name in newest_first:
            if name <= made and (at := time_of(name)):
                newest_of.setdefault(at.strftime(period), name)
        keep |= set(list(newest_of.values())[:count])
    return keep
