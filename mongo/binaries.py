"""Where the MongoDB binaries come from."""

import importlib.util
import os
import shutil
from pathlib import Path

FETCHED = Path(__file__).resolve().parents[1] / ".cache" / "mongodb-7.0.11"


class NoMongod(Exception):
    """This machine has no MongoDB; the text says how to get one."""


def find_binaries(*, sharded: bool = False) -> Path:
    """Return the folder of mongod (and mongos, `sharded`).

    The folder MONGODB_BIN, else PATH, else what the scripts install: the pinned package, and for
    a sharded cluster, which that cannot make, the folder of mongo/fetch-emulated.
    """
    programs = ["mongod", "mongos"] if sharded else ["mongod"]
    if named := os.environ.get("MONGODB_BIN"):
        return _given(Path(named), programs)
    found = [shutil.which(program) for program in programs]
    if found[0] and all(found):
        return Path(found[0]).parent
    if not sharded:
        return _packaged()
    if FETCHED.is_dir():
        return FETCHED
    raise NoMongod(
        "a sharded cluster needs mongod and mongos: run mongo/fetch-emulated, "
        "or set MONGODB_BIN to the folder that has both"
    )


def _given(folder: Path, programs: list[str]) -> Path:
    for program in programs:
        if not os.access(folder / program, os.X_OK):
            raise NoMongod(f"MONGODB_BIN is {folder}, but there is no program {program} in it")
    return folder


def _packaged() -> Path:
    # Found without importing: the package's own __init__ is not ours to run.
    spec = importlib.util.find_spec("fiftyone")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        mongod = Path(folder) / "db" / "bin" / "mongod"
        if mongod.is_file():
            mode = mongod.stat().st_mode
            if mode & 0o111 != 0o111:  # the wheel lacks the run bit
                mongod.chmod(mode | 0o111)
            return mongod.parent
    raise NoMongod("no mongod here: install MongoDB, or set MONGODB_BIN to the folder that has it")
