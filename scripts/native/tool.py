"""Commands of the ingest service, on a stack's database: ./scripts/token, account and storage."""

import argparse
import os
import sys
from pathlib import Path

from scripts.native.layout import DEFAULT_DATA, Layout
from scripts.native.parts import FAILURES, environment, ingest_names, parts


def chosen() -> tuple[Layout, dict[str, str], list[str]]:
    """Return the stack, the settings of its first ingest service, and the words but for --data.

    SystemExit: there is none.
    """
    ours = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    ours.add_argument("--data", type=Path, default=DEFAULT_DATA)  # wherever it stands
    options, words = ours.parse_known_args()
    try:
        layout = Layout.saved(options.data.resolve())
        if layout is None:
            sys.exit("the stack was never started: ./scripts/up")
        return layout, settings(layout), words
    except FAILURES as error:
        sys.exit(str(error))


def settings(layout: Layout) -> dict[str, str]:
    """Return the environment of the first ingest service of a stack."""
    first = next(part for part in parts(layout) if part.name == ingest_names(layout)[0])
    return environment(layout) | first.environment


def main() -> None:
    """Run a module with the settings of the stack's first ingest service."""
    _, variables, (module, *arguments) = chosen()
    command = [sys.executable, "-m", module, *arguments]
    os.execve(command[0], command, variables)


if __name__ == "__main__":
    main()
