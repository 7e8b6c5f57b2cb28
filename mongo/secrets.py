"""The stack's secrets: made once, kept in files that only their owner reads.

python -m mongo.secrets FOLDER [FOLDER=NAME,NAME...]    copies of some for the services' group
"""

import fcntl
import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

KEYFILE = "keyfile"
ADMIN_PASSWORD = "admin_password"  # noqa: S105 - the name of a file
APP_PASSWORD = "app_password"  # noqa: S105
PAGE_TOKEN = "page_token"  # noqa: S105  # what the monitoring service reads with
SESSION_KEY = "session_key"  # what the cookies of people who logged in are signed with
ADMIN_USER = "admin"
APP_USER = "waymark"
# A key file may hold 6 to 1024 base64 characters; 48 bytes make 64 of its alphabet.
_BYTES = {KEYFILE: 48, ADMIN_PASSWORD: 24, APP_PASSWORD: 24, PAGE_TOKEN: 32, SESSION_KEY: 32}


class Secrets(NamedTuple):
    """What the members of the cluster, its administrator and the services prove themselves with."""

    keyfile: str
    admin_password: str
    app_password: str

    @classmethod
    def read(cls, folder: Path) -> "Secrets":
        """Read the three files of a folder."""
        names = (KEYFILE, ADMIN_PASSWORD, APP_PASSWORD)
        return cls(*((folder / name).read_text().strip() for name in names))

    def __repr__(self) -> str:
        """Never show them in a log or a traceback."""
        return "Secrets(...)"


def ensure(folder: Path) -> list[str]:
    """Make the files that are missing; return their names.

    PermissionError when others may enter the folder: they could put secrets of theirs there.
    """
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sync(folder.parent)
    with locked(folder):
        if folder.stat().st_mode & 0o077:
            command = shlex.join(["chmod", "700", str(folder)])
            raise PermissionError(f"others may enter {folder}, which holds secrets: {command}")
        missing = [name for name in _BYTES if not _whole(folder / name)]
        for name in missing:
            text = secrets.token_urlsafe(_BYTES[name]).replace("-", "+").replace("_", "/")
            write(folder / name, text)
        for file in (folder / name for name in _BYTES):
            if file.stat().st_mode & 0o077:  # restored from a backup, say
                file.chmod(0o400)
    return missing


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time write secrets in a folder; one that dies frees it."""
    with _opened(folder) as at:
        fcntl.flock(at, fcntl.LOCK_EX)
        yield


def write(file: Path, text: str, mode: int = 0o400) -> None:
    """Write a secret, whole and on the disk or not at all, while the folder is `locked`."""
    for left in file.parent.glob(f".{file.name}.*"):  # by a crash
        left.unlink()
    aside = file.with_name(f".{file.name}.new")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as out:
        out.write(text)
        os.fchmod(out.fileno(), mode)
        out.flush()
        os.fsync(out.fileno())
    aside.rename(file)
    _sync(file.parent)


def _whole(file: Path) -> bool:
    """Tell whether there is a secret; a power cut may have left an earlier version's file empty."""
    return file.exists() and file.stat().st_size > 0


def _sync(folder: Path) -> None:
    with _opened(folder) as at:
        os.fsync(at)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield at
    finally:
        os.close(at)


def main() -> None:
    """Make what is missing in one folder; give the services' group copies in others."""
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    try:
        made = ensure(folder)
        for of_service in sys.argv[2:]:
            shared, _, names = of_service.partition("=")
            with locked(Path(shared)):
                for name in names.split(","):
                    write(Path(shared, name), (folder / name).read_text(), 0o440)
    except OSError as error:
        sys.exit(f"secrets: {error}")
    print(f"made {', '.join(made)}" if made else "all secrets are there")


if __name__ == "__main__":
    main()
