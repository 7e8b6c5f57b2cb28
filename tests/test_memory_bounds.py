"""docs/memory.md names the bounds that the code has, and what the whole box took."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import ingest
from ingest.web import lanes

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "memory.md").read_text()
BOX = (Path(__file__).parent / "compose" / "box_report.txt").read_text().partition("\npeak\n")[2]
LIMIT, ANONYMOUS = 1, 4  # columns of the report
OURS = ("gateway", "ingest-1", "ingest-2", "monitoring")
ROUTERS = ("mongos-1", "mongos-2")
MONGO = ("configsvr", "shard1", "shard2")
NAMED = re.findall(r"`([A-Z_]+)` = ([0-9]+)", PAGE)


def values(name: str) -> set[int]:
    """Return the values of a constant wherever the ingest service declares it."""
    found = set()
    for module in pkgutil.walk_packages(ingest.__path__, "ingest."):
        if not module.name.endswith("__main__"):
            found.add(getattr(importlib.import_module(module.name), name, None))
    return {one for one in found if isinstance(one, int)}


@pytest.mark.parametrize(("name", "number"), NAMED)
def test_a_bound_is_as_the_page_says(name: str, number: str) -> None:
    assert int(number) in values(name)


def test_the_bounds_of_bodies_and_lanes_are_as_the_page_says() -> None:
    sizes = (lanes.SMALL_BODY_BYTES, lanes.BATCH_BODY_BYTES, lanes.FILE_BODY_BYTES)
    assert "{} bytes, of a batch {}, of an import {};".format(*sizes) in PAGE
    for name in ("HEALTH", "WRITES", "SHORT", "LONG", "PEOPLE"):
        assert f"`{name}` {getattr(lanes, name).threads}" in PAGE
    assert len(NAMED) > 10


def test_the_whole_box_is_as_its_last_report_says() -> None:
    heads = (
        "the four of ours",
        "two routers",
        "two shards",
        "program text",
        "the engine",
        "the system",
    )
    peak, highest, full = zip(*(numbers(head) for head in heads), strict=True)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in BOX.splitlines()]
    rows = {row[0]: row for row in cells if len(row) == 8}
    parts = (OURS, ROUTERS, MONGO)
    said = re.search(r"(\d+) of program text .* (\d+) engine, (\d+) system: (\d+) of", BOX)
    assert said
    *rest, together = map(int, said.groups())
    assert (
        list(peak) == [sum(int(rows[name][ANONYMOUS]) for name in names) for names in parts] + rest
    )
    assert list(full[:3]) == [sum(int(rows[name][LIMIT]) for name in names) for names in parts]
    sums = numbers("together")
    assert abs(together - sums[0]) <= 3  # each figure is rounded
    assert sums == [sum(column) for column in (peak, highest, full)]
    assert all(one <= two for one, two in zip(peak, highest, strict=True))


def numbers(head: str) -> list[int]:
    """Return what a row of the page's last table says: at 35/s, the highest, with full limits."""
    [row] = re.findall(rf"^\| {head}[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    cells = [cell.strip().replace(",", "") for cell in row.split("|")]
    return [int(cell) if cell.isdecimal() else 0 for cell in cells]  # "in the limits"
