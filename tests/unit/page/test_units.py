"""The page's rules and layouts, which need no browser: node's test runner runs their unit tests."""

import json
import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from common.audit_events import Event
from monitoring.static_files import FOLDER

UNITS = sorted(Path(__file__).parent.glob("*.test.mjs"))
PURE = sorted([*FOLDER.glob("rules/**/*.js"), *FOLDER.glob("drawings/*_layout.js")])
IMPORT = re.compile(r'from "(\.[^"]+)"')
BROWSER = re.compile(r"\b(document|window|location|localStorage|fetch|performance)\b[.(]")


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_unit(file: Path) -> None:
    done = subprocess.run(["node", "--test", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"^# tests 0$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("file", PURE, ids=lambda file: file.name)
def test_a_rule_or_layout_knows_no_browser_and_is_tested(file: Path) -> None:
    text = re.sub(r"/\*.*?\*/|//.*", "", file.read_text(), flags=re.DOTALL)  # without comments
    assert not BROWSER.search(text)
    imported = {(file.parent / target).resolve() for target in IMPORT.findall(text)}
    assert imported <= set(PURE), "it imports what may know the browser"
    tested = "".join(unit.read_text() for unit in UNITS)
    assert f"static/{file.relative_to(FOLDER)}" in tested


@pytest.mark.parametrize("event", get_args(Event))
def test_the_page_has_words_for_what_is_audited(event: str) -> None:
    assert f'"{event}": (' in (FOLDER / "rules/audit/audit_entries.js").read_text()


def test_what_checks_the_types_is_locked_by_hash_and_names_no_registry(root: Path) -> None:
    lock = json.loads((root / "services" / "monitoring" / "package-lock.json").read_text())
    packages = [package for path, package in lock["packages"].items() if path]
    assert packages
    for package in packages:
        assert package["integrity"].startswith("sha512-")
        assert "resolved" not in package
