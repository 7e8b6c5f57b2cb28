"""The load tests stand on their own: what tests share with them is in scripts/processes."""

import ast
from pathlib import Path

import pytest

from scripts.processes import ROOT

MODULES = sorted((ROOT / "loadtests").rglob("*.py"))


def imported(module: Path) -> set[str]:
    """Return the packages that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_it_imports_nothing_of_the_tests(module: Path) -> None:
    assert not imported(module) & {"tests", "ingest", "monitoring"}
