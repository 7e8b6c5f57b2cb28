"""What the log of a part that does not run says, and what to do."""

import re
import subprocess
from pathlib import Path

import pytest

from scripts.native.reasons import last_words

FULL = '{"t":{"$date":"2026"},"s":"E", "msg":"No space left on device"}'
KEY = '{"t":{"$date":"2026"},"s":"F", "msg":"Unable to acquire security key[s]"}'
TAKEN = "[emerg] 1#1: bind() to 0.0.0.0:80 failed (98: Address already in use)"
QUIET = '{"t":{"$date":"2026"},"s":"I", "msg":"Shutting down"}'


@pytest.mark.parametrize(
    ("lines", "begins", "has"),
    [
        ([FULL, QUIET], "its disk is full: make room", "No space left on device"),
        ([FULL, KEY, QUIET], "the key file is damaged", "No space left on device"),
        ([QUIET], QUIET, ""),
        ([QUIET.replace("Shutting down", "No space left on device")], '{"t"', ""),  # no error
        (["ValueError: SEAL_HOURS must be 0"], "a setting is wrong", "SEAL_HOURS must be 0 ["),
        ([TAKEN, "[emerg] 1#1: still could not bind()"], "its port is taken", "0.0.0.0:80 failed"),
        ([], "it wrote no log", ""),
    ],
)
def test_a_reason_comes_with_what_to_do(
    tmp_path: Path, lines: list[str], begins: str, has: str
) -> None:
    log = tmp_path / "mongod.log"
    log.write_text("\n".join(lines))
    said = last_words(log)
    assert said.startswith(begins)
    assert has in said
    assert said.endswith(f"[{log}]")


def test_what_an_earlier_start_said_is_no_reason(tmp_path: Path) -> None:
    log = tmp_path / "mongod.log"
    log.write_text(FULL + "\n")
    size = log.stat().st_size
    with log.open("a") as file:
        file.write(QUIET)
    assert last_words(log, size) == f"{QUIET} [{log}]"
    assert last_words(log, size + 10**6).startswith("its disk is full")  # it was rotated
    log.write_text("x\n" * 10**6 + FULL)
    assert last_words(log).startswith("its disk is full")
    assert last_words(tmp_path / "none") == f"it wrote no log [{tmp_path / 'none'}]"


def test_each_section_that_is_named_is_there(root: Path) -> None:
    headings = set(re.findall("^### (.+)$", (root / "docs/runbook.md").read_text(), re.MULTILINE))
    named = set()
    for file in ("scripts/native", "services", "mongo"):
        for module in (root / file).rglob("*.py"):
            named |= set(re.findall("“([^”]+)”", module.read_text()))
    assert len(named) >= 7
    assert named <= headings


def test_names_that_are_no_settings_are_told(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text(
        "RETENTION_DAYS=3\nRETENTON_DAYS=3 # x\nCOMPOSE_PROFILES=acme\nlower=1\n# A_B=1"
    )
    script = f"COMPOSE_ENV_FILES={file}; . {root}/scripts/lib.sh; warn_of_names"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"WARNING: RETENTON_DAYS in {file} is no setting of Waymark" in done.stderr
