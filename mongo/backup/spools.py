"""What waits in the spools of a stack without Docker: copied, and given to its services."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from pathlib import Path

from common.erasures import FILE_NAME
from mongo.backup.backup import Backup
from mongo.backup.chunks import CHUNK_BYTES, Chunk, Writer
from mongo.backup.encryption import ENDING, Key
from mongo.backup.errors import BackupError
from mongo.backup.shelf import Shelf

FOLDER = "spool"
PAGES = 1000  # that are copied at once
# Beside the spools, where the same lies: not encrypted, and no spool by its name.
COPY = ".backup"


def copy(spool_folder: Path, writer: Writer) -> list[Chunk]:
    """Copy the spools in a folder, each as of one moment, and the list of erasures beside them."""
    copied: list[Chunk] = []
    aside = spool_folder / COPY
    for spool in sorted(spool_folder.glob("*.db")):
        try:
            count = _copy(spool, aside)
            if count is not None:
                copied += _written(spool.name, count, aside, writer)
        except sqlite3.Error as error:
            if not spool.exists():  # it was adopted, and is empty
                continue
            raise BackupError(f"the spool {spool} cannot be read: {error}") from error
        finally:
            _clear(aside)
    list_file = spool_folder / FILE_NAME
    if list_file.exists():
        copied += _written(FILE_NAME, 0, list_file, writer)
    return copied


def _copy(spool: Path, aside: Path) -> int | None:
    """Copy a spool; return how many wait there, None while it is being made."""
    _clear(aside)  # of one that was killed
    with ExitStack() as held, _owner_of(spool.parent):  # who opens what SQLite makes beside it
        source = held.enter_context(closing(sqlite3.connect(f"{spool.as_uri()}?mode=rw", uri=True)))
        if ("spool",) not in source.execute("SELECT name FROM sqlite_master").fetchall():
            return None
        aside.touch(mode=0o600)
        target = held.enter_context(closing(sqlite3.connect(aside)))
        source.backup(target, pages=PAGES)
        # Not with a log beside it, as services have it.
        target.execute("PRAGMA journal_mode = DELETE")
        (count,) = target.execute("SELECT count(*) FROM spool").fetchone()
        return int(count)


def _clear(aside: Path) -> None:
    for left in aside.parent.glob(f"{aside.name}*"):  # SQLite has journals
        left.unlink()


def _written(name: str, count: int, file: Path, writer: Writer) -> Iterator[Chunk]:
    """Write a file in pieces; the first tells how many documents all of them have."""
    with file.open("rb") as source:
        number = 0
        while (piece := source.read(CHUNK_BYTES)) or not number:
            yield writer.write(f"{FOLDER}/{name}.{number:05}", FOLDER, count, piece)
            number, count = number + 1, 0


def _name(chunk: Chunk) -> str:
    """Return of which file it is a piece; backups had whole ones once."""
    return re.sub(r"\.\d{5}$", "", Path(chunk.file).name.removesuffix(ENDING))


def erasures(shelf: Shelf, key: Key | None) -> bytes | None:
    """Return the list of erasures of the newest backup that has one.

    It only grows: of an older backup it tells whom to forget again. Raises BackupError.
    """
    for name in reversed(shelf.whole()):
        backup = Backup.opened(shelf.files(name), key)
        pieces = [chunk for chunk in backup.manifest.spools if _name(chunk) == FILE_NAME]
        if pieces:
            return b"".join(map(backup.content, pieces))
    return None


def give_back(backup: Backup, spool_folder: Path) -> None:
    """Have a service adopt what waits; once more does no harm: each detection has its name."""
    for name, pieces in groupby(backup.manifest.spools, _name):
        chunks = list(pieces)
        if not chunks[0].documents:
            continue
        file = spool_folder / f"restored-{backup.identity[:8]}-{name}"
        aside = spool_folder / f".{file.name}"
        with _owner_of(spool_folder):
            spool_folder.mkdir(mode=0o700, exist_ok=True)
            target = aside.open("wb")
        with target:
            target.writelines(map(backup.content, chunks))
            target.flush()
            os.fsync(target.fileno())
        with _owner_of(spool_folder):
            # A service looks for locks that are free; so the lock comes last.
            aside.rename(file)
            file.with_suffix(".lock").touch(mode=0o600)


@contextmanager
def _owner_of(folder: Path) -> Iterator[None]:
    """Let root be whoever has a folder for a moment."""
    owner = folder.stat() if os.geteuid() == 0 and folder.exists() else None
    if owner is None or owner.st_uid == 0:
        yield
        return
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
