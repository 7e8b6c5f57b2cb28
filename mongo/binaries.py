"""Where the MongoDB binaries come from."""

import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
from pathlib import Path

from mongo import official, processor

FETCHED = Path(__file__).resolve().parents[1] / ".cache" / "mongodb-7.0.11"


class NoMongod(Exception):
    """This machine has no MongoDB; the text says how to get one."""


def find_binaries(*, sharded: bool = False) -> Path:
    """Return the folder of mongod (and mongos, `sharded`).

    The folder MONGODB_BIN, else PATH, else what the scripts install: MongoDB's own build, else the
    pinned package, and for a sharded cluster, which that cannot make, that of mongo/fetch-emulated.
    """
    return _find(sharded=sharded)[0]


def _find(*, sharded: bool) -> tuple[Path, str]:
    """Return the folder, and where it comes from."""
    programs = ["mongod", "mongos"] if sharded else ["mongod"]
    if named := os.environ.get("MONGODB_BIN"):
        return _checked(Path(named), programs), "of MONGODB_BIN"
    paths = [shutil.which(program) for program in programs]
    if paths[0] and all(paths):
        return Path(paths[0]).parent, "of PATH"
    if kept := official.kept():
        return kept, "MongoDB's own build"
    if not sharded:
        return _packaged(), "of the pinned package"
    if FETCHED.is_dir():
        return FETCHED, "for arm64, emulated on other machines"
    raise NoMongod(
        "a sharded cluster needs mongod and mongos: run mongo/fetch-emulated, "
        "or set MONGODB_BIN to the folder that has both"
    )


def is_emulated() -> bool:
    """Tell whether a sharded cluster is emulated here. Raises NoMongod."""
    return find_binaries(sharded=True) == FETCHED and platform.machine() != "aarch64"


def version(*, sharded: bool) -> tuple[str, str]:
    """Return its version ("" when it does not tell), and a text with the version and the origin.

    Raises NoMongod, also where this processor cannot run it.
    """
    folder, origin = _find(sharded=sharded)
    mongod = folder / "mongod"
    try:
        answer = subprocess.run(
            [str(mongod), "--version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoMongod(f"{mongod} does not run: {error}") from error
    # Of a shell that started it, the second.
    if answer.returncode in (-signal.SIGILL, 128 + signal.SIGILL):
        needed = processor.lacks() or "AVX (x86-64) or ARMv8.2 (arm64)"
        raise NoMongod(f"this processor cannot run {mongod}: MongoDB 5.0 and newer need {needed}")
    number = re.search(r"version v?(\d+\.\d+\.\d+)", answer.stdout)
    name = number[1] if number else "of an unknown version"
    return number[1] if number else "", f"MongoDB {name}, {origin} [{folder}]"


def _checked(folder: Path, programs: list[str]) -> Path:
    for program in programs:
        if not os.access(folder / program, os.X_OK):
            raise NoMongod(f"MONGODB_BIN is {folder}, but there is no program {program} in it")
    return folder


def _packaged() -> Path:
    # Found without importing: the package's own __init__ is not ours to run.
    if lacking := processor.lacks():
        raise NoMongod(f"this processor lacks {lacking}, which MongoDB 5.0 and newer need")
    spec = importlib.util.find_spec("fiftyone")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        mongod = Path(folder) / "db" / "bin" / "mongod"
        if mongod.is_file():
            mode = mongod.stat().st_mode
            if mode & 0o111 != 0o111:  # the wheel lacks the run bit
                mongod.chmod(mode | 0o111)
            return mongod.parent
    raise NoMongod("no mongod here: install MongoDB, or set MONGODB_BIN to the folder that has it")
