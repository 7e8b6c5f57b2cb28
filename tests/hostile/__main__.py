"""Try everything on a stack of its own, and print what came back.

.venv/bin/python -m tests.hostile [--requests N]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from scripts.processes import ROOT
from tests.hostile import fuzz, table
from tests.hostile.site import running_site


def main() -> None:
    """End with 1 when anything but a declared answer came back."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--requests", type=int, default=0, help="go on with so many at random")
    parser.add_argument("--seed", type=int, default=1, help="of what is random")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_site(ROOT, Path(folder)) as site:
        found = table.lines(site, table.cases())
        print("\n".join(table.printed(found)))
        wrong = sum(bool(line.wrong) for line in found)
        print(f"\n{len(found)} requests, {wrong} with an answer that is not declared")
        if arguments.requests:
            done = fuzz.fuzz(site, arguments.requests, arguments.seed)
            print("\n".join(done.printed()))
            wrong += len(done.wrong)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
