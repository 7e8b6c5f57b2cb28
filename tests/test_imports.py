"""What stands on its own: commands and load tests need no tests, whole stacks no service."""

import ast
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("scripts", {"tests", "ingest", "monitoring"}),
        ("loadtests", {"tests", "ingest", "monitoring"}),
        ("tests/stack", {"ingest", "monitoring"}),
    ],
)
def test_what_imports_what(root: Path, package: str, forbidden: set[str]) -> None:
    for file in (root / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & forbidden, file
