"""A folder in which backups are kept, each in a folder of its own."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mongo.backup.errors import BackupError
from mongo.backup.shelf import MANIFEST, new_name, time_of

UNFINISHED = ".unfinished"  # what a backup's folder is called until it is whole


class FolderFiles:
    """The files of a backup, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """The backup's, on its shelf."""
        return self.folder.name.removesuffix(UNFINISHED)

    def __str__(self) -> str:
        """Return its path, as it is when it is whole."""
        return str(self.folder.with_name(self.name))

    def write(self, file: str, content: bytes) -> None:
        """Have a new file that only its owner reads, on the disk."""
        path = self.folder / file
        path.parent.mkdir(mode=0o700, exist_ok=True)
        at = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(at, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(at)

    def read(self, file: str) -> bytes:
        """Return a file."""
        try:
            return (self.folder / file).read_bytes()
        except OSError as error:
            raise BackupError(f"{self} is not whole: {error}") from error


class FolderShelf:
    """A folder with backups."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        """Return its path."""
        return str(self.folder)

    @contextmanager
    def being_made(self) -> Iterator[FolderFiles]:
        """Give a new folder; its name is that of a whole one at the end."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.locked():
            for left in self.folder.glob(f"*{UNFINISHED}"):
                shutil.rmtree(left)
            name = new_name(self.whole())
            new = self.folder / f"{name}{UNFINISHED}"
            new.mkdir(mode=0o700)
            try:
                yield FolderFiles(new)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)  # the disk may be full
                raise
            new.rename(self.folder / name)
            sync(self.folder)

    def whole(self) -> list[str]:
        """Return the names of the whole backups, the oldest first."""
        names = (path.parent.name for path in self.folder.glob(f"*/{MANIFEST}"))
        return sorted(filter(time_of, names))

    def files(self, name: str) -> FolderFiles:
        """Return the files of a backup."""
        return FolderFiles(self.folder / name)

    def delete(self, name: str) -> None:
        """Delete a backup."""
        shutil.rmtree((self.folder / name).rename(self.folder / f"{name}{UNFINISHED}"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be alone at work in it."""
        with locked(self.folder):
            yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be alone at work in a folder. Raises BackupError."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(at, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"another backup is at work in {folder}") from None
        yield
    finally:
        os.close(at)


def sync(folder: Path) -> None:
    """Have on the disk what a folder has."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(at)
    finally:
        os.close(at)
