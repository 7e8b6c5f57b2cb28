"""Run one part of a stack in the foreground, with the environment that supervisord gives it.

    python -m scripts.native.foreground ingest-1 [--data DIR]

For a debugger: `breakpoint()` in the part's code gets this terminal. Stop the part first, with
supervisorctl (CONTRIBUTING.md): two of them cannot listen on one port.
"""

import argparse
import os
import sys
from pathlib import Path

from scripts.native.layout import DEFAULT_DATA, Layout
from scripts.native.parts import FAILURES, environment, parts


def main() -> None:
    """Become the part that is named."""
    parser = argparse.ArgumentParser(prog="python -m scripts.native.foreground")
    parser.add_argument("part", help="its name, as ./scripts/status shows it")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the stack")
    arguments = parser.parse_args()
    try:
        layout = Layout.saved(arguments.data.resolve())
        if layout is None:
            sys.exit("the stack is not running: ./scripts/up starts it")
        by_name = {part.name: part for part in parts(layout)}
        if arguments.part not in by_name:
            sys.exit(f"there is no part {arguments.part}: one of {', '.join(by_name)}")
        part = by_name[arguments.part]
        os.chdir(layout.run)
        os.execvpe(part.command[0], part.command, environment(layout) | part.environment)
    except FAILURES as error:
        sys.exit(f"{arguments.part}: {error}")


if __name__ == "__main__":
    main()
