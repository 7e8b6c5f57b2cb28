"""The rooms of the service: only storage knows the driver, and imports point one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "services" / "ingest" / "ingest"
DRIVER = {"pymongo", "bson", "gridfs"}
# From the ground up: a room imports from those above it in this list, and from itself.
ROOMS = [
    {"errors", "config", "process", "batcher", "turns"},
    {"tasks"},
    {"rules"},
    {"storage"},
    {"recording", "histories", "access"},
    {"assembly"},
    {"web"},
    {"legacy"},
    {"api"},
    {"ingest"},
    {"asgi"},
    {"__main__", "commands"},
]
FLOOR = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def room(file: Path) -> str:
    first = file.parts[0].removesuffix(".py")
    return "ingest" if first == "__init__" else first


@pytest.mark.parametrize("file", FILES, ids=str)
def test_only_storage_knows_the_driver(file: Path) -> None:
    names = {name.split(".")[0] for name in imported(file)}
    assert room(file) == "storage" or not names & DRIVER


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_one_way(file: Path) -> None:
    own = room(file)
    for name in imported(file):
        package, _, rest = name.partition(".")
        if package != "ingest":
            continue
        other = rest.split(".")[0]
        other = other if other in FLOOR else "ingest"
        allowed = FLOOR[other] < FLOOR[own] or other == own or own == other == "ingest"
        allowed = allowed or (FLOOR[own] == FLOOR[other] == 0)
        assert allowed, f"{file} imports {name}"
