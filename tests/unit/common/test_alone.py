"""What all parts of the stack read."""

import subprocess
import sys
from pathlib import Path


def test_it_needs_the_standard_library_alone(root: Path) -> None:
    names = [f"common.{file.stem}" for file in (root / "common").glob("*.py")]
    code = f"import sys; sys.path.append({str(root)!r}); import {', '.join(names)}"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


def test_each_image_that_runs_our_code_has_it(root: Path) -> None:
    stages = (root / "Dockerfile").read_text().split("\nFROM ")
    for folder in ("gateway", "services/ingest/ingest", "services/monitoring/monitoring", "mongo"):
        (stage,) = [stage for stage in stages if f"\nCOPY {folder} /app/" in stage]
        assert "\nCOPY common /app/common\n" in stage
    assert "!common" in (root / ".dockerignore").read_text().splitlines()
