"""Try everything on a stack of its own, as everybody, and tell what came back.

.venv/bin/python -m tests.security [--requests N] [--report FILE]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from scripts.processes import ROOT
from tests.security.report import Report
from tests.security.site import Guarded, running


def main() -> None:
    """End with 1 when anything but a declared answer came back."""
    parser = argparse.ArgumentParser(prog="python -m tests.security", description=__doc__)
    parser.add_argument("--requests", type=int, default=0, help="go on at random up to so many")
    parser.add_argument("--seed", type=int, default=1, help="of what is random")
    parser.add_argument("--report", type=Path, help="a file that gets what is printed, too")
    arguments = parser.parse_args()
    report = Report()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Guarded(ROOT, Path(folder) / "data")) as site,
    ):
        report.run(site, arguments.requests, arguments.seed)
    if arguments.report:
        arguments.report.write_text("\n".join(report.lines) + "\n")
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
