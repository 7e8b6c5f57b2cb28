"""./scripts/token and ./scripts/account: commands of the ingest service, on a stack's database."""

import argparse
import os
import sys
from pathlib import Path

from scripts.native.layout import DEFAULT_DATA, Layout
from scripts.native.parts import FAILURES, environment, ingest_names, parts


def main() -> None:
    """Run a module with the settings of the stack's first ingest service."""
    ours = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    ours.add_argument("--data", type=Path, default=DEFAULT_DATA)  # wherever it stands
    options, (module, *arguments) = ours.parse_known_args()
    try:
        layout = Layout.saved(options.data.resolve())
        if layout is None:
            sys.exit("the stack was never started: ./scripts/up")
        first = next(part for part in parts(layout) if part.name == ingest_names(layout)[0])
    except FAILURES as error:
        sys.exit(str(error))
    command = [sys.executable, "-m", module, *arguments]
    os.execve(command[0], command, environment(layout) | first.environment)


if __name__ == "__main__":
    main()
