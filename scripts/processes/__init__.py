"""Run the programs of the stack as child processes: for tests, load tests and ./scripts/up."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of this checkout
