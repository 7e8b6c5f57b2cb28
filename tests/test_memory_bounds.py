"""docs/memory.md names the bounds that the code has."""

import importlib
import pkgutil
import re
from itertools import chain
from pathlib import Path

import pytest

import ingest
import mongo.backup
from common import routes
from ingest.web import lanes

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "memory.md").read_text()
ROOMS = (ingest, mongo.backup)
NAMED = re.findall(r"`([A-Z_]+)` = ([0-9]+)", PAGE)


def values(name: str) -> set[int]:
    """Return the values of a constant wherever the ingest service, or a backup, declares it."""
    numbers = set()
    walked = (pkgutil.walk_packages(room.__path__, f"{room.__name__}.") for room in ROOMS)
    for module in chain.from_iterable(walked):
        if not module.name.endswith("__main__"):
            numbers.add(getattr(importlib.import_module(module.name), name, None))
    return {value for value in numbers if isinstance(value, int)}


@pytest.mark.parametrize(("name", "number"), NAMED)
def test_a_bound_is_as_the_page_says(name: str, number: str) -> None:
    assert int(number) in values(name)


def test_the_bounds_of_bodies_and_lanes_are_as_the_page_says() -> None:
    sizes = (routes.SMALL_BODY_BYTES, routes.BATCH_BODY_BYTES, routes.FILE_BODY_BYTES)
    assert "{} bytes, of a batch {}, of an import {};".format(*sizes) in PAGE
    for name in ("HEALTH", "WRITES", "SHORT", "LONG", "PEOPLE"):
        assert f"`{name}` {getattr(lanes, name).threads}" in PAGE
    assert len(NAMED) > 10
