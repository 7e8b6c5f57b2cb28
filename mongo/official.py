"""MongoDB's own build for this machine: fetched once, checked, then unpacked into .cache.

python -m mongo.official   # prints its folder, or why it cannot be had (exit status 1)
"""

import fcntl
import hashlib
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from mongo import processor

CACHE = Path(__file__).resolve().parents[1] / ".cache"
VERSION = "7.0.14"
ADDRESS = "https://fastdl.mongodb.org/linux/mongodb-linux-{}-ubuntu2204-{}.tgz"
# As nixpkgs has them in pkgs/by-name/mo/mongodb-ce, and nine other public repositories the first.
SHA256 = {
    "x86_64": "b4cf8caae108785135ecc8b86ad8ed6df5d6efb84b9b95a50ecba2fc246ce084",
    "aarch64": "e17887bfa24aa2967fdf1ad7c13fa7bd0d8eb1b9212fbf6ec010a738e31a3657",
}
PROGRAMS = ("bin/mongod", "bin/mongos")
ANSWER_SECONDS = 4.0  # where there is no way out, the next way is taken soon


class NotToBeHad(Exception):
    """This machine cannot have the build; the text is the reason."""


class Wanted(NamedTuple):
    """One build: its archive, the digest of that, and the folder of its programs."""

    address: str
    sha256: str

    @property
    def folder(self) -> Path:
        """Where its programs lie; an archive of another digest has another folder."""
        return CACHE / f"mongodb-{self.sha256[:12]}"


def wanted() -> Wanted:
    """Return which build this machine is to have. Raises NotToBeHad.

    MONGODB_TARBALL and MONGODB_TARBALL_SHA256 name another one, or the same elsewhere; empty: none.
    """
    machine = platform.machine()
    address = os.environ.get("MONGODB_TARBALL", ADDRESS.format(machine, VERSION))
    sha256 = os.environ.get("MONGODB_TARBALL_SHA256") or SHA256.get(machine)
    if not address:
        raise NotToBeHad("MONGODB_TARBALL is empty")
    if not sha256:
        raise NotToBeHad(f"MongoDB makes none for {machine}")
    if lacking := processor.lacks():
        raise NotToBeHad(f"this processor lacks {lacking}")
    return Wanted(address, sha256.lower())


def kept() -> Path | None:
    """Return the folder of its programs when they are here already."""
    try:
        folder = wanted().folder / "bin"
    except NotToBeHad:
        return None
    return folder if folder.is_dir() else None


def ensure() -> Path:
    """Return the folder of its programs; fetch them where they are not. Raises NotToBeHad."""
    build = wanted()
    CACHE.mkdir(exist_ok=True)
    lock = os.open(CACHE, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the second waits, and finds it
        if not build.folder.is_dir():
            _fetch(build)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise NotToBeHad(f"{build.address}: {error}") from error
    finally:
        os.close(lock)
    return build.folder / "bin"


def _fetch(build: Wanted) -> None:
    os.environ.setdefault("RES_OPTIONS", "timeout:2 attempts:1")  # a silent name server
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="mongodb-part-") as scratch:
        archive, new = Path(scratch, "tgz"), Path(scratch, "new")
        with (
            urllib.request.urlopen(build.address, timeout=ANSWER_SECONDS) as answer,  # noqa: S310  # the operator's
            archive.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != build.sha256:
            raise NotToBeHad(f"{build.address} has the SHA-256 {digest}, not {build.sha256}")
        _unpack(archive, new)
        for folder in (new, new / "bin"):
            folder.chmod(0o755)  # the stack's user runs it
        new.rename(build.folder)


def _unpack(archive: Path, folder: Path) -> None:
    """Take the two programs out of it, and nothing else."""
    (folder / "bin").mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/")[2]  # below a folder of the version's name
            content = tar.extractfile(member) if name in PROGRAMS else None
            if content:
                with content, (folder / name).open("wb") as file:
                    shutil.copyfileobj(content, file)
                (folder / name).chmod(0o755)
    if missing := [name for name in PROGRAMS if not (folder / name).exists()]:
        raise tarfile.TarError(f"there is no {missing[0]} in it")


def main() -> None:
    """Run the command."""
    try:
        print(ensure())
    except NotToBeHad as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
