"""How much memory a process says it uses, and its limit."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.memory import memory
from scripts.processes import ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import LimitedGroup
from tests.needs import limited

LIMIT = 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": str(LIMIT), "memory.stat": "anon 5\nfile 7\n"}, (5, LIMIT)),
        (
            {
                "memory/memory.limit_in_bytes": str(LIMIT),
                "memory/memory.stat": "rss 1\ntotal_rss 6\n",
            },
            (6, LIMIT),
        ),
    ],
)
def test_a_container_knows_its_limit(
    tmp_path: Path, files: dict[str, str], expected: tuple[int, int]
) -> None:
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert memory(tmp_path) == expected


def test_without_a_limit_it_is_the_process_that_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    used, limit = memory(tmp_path)
    assert used > 1024 * 1024
    assert limit is None


@limited
def test_a_process_knows_the_limit_of_its_own_group() -> None:
    """Which is no container's: systemd's, or a test's."""
    program = "from common.memory import memory; input(); print(*memory())"
    with (
        LimitedGroup("own", Limits(None, LIMIT)) as group,
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as asked,
    ):
        group.adopt(asked.pid)
        used, limit = map(int, asked.communicate("\n", timeout=60)[0].split())
    assert limit == LIMIT
    assert 0 <= used < limit
