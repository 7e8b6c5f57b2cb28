"""./scripts/token [--data FOLDER] create|list|revoke: the command of the ingest services."""

import os
import sys
from pathlib import Path

from scripts.native.layout import DEFAULT_DATA, Layout, StackError
from scripts.native.parts import environment, ingest_names, parts


def main() -> None:
    """Run the command with the settings of the stack's first ingest service."""
    arguments = sys.argv[1:]
    data = DEFAULT_DATA
    if arguments[:1] == ["--data"]:
        data, arguments = Path(arguments[1]).resolve(), arguments[2:]
    try:
        layout = Layout.saved(data)
        if layout is None:
            sys.exit("token: the stack was never started: ./scripts/up")
        first = next(part for part in parts(layout) if part.name == ingest_names(layout)[0])
    except (StackError, OSError) as error:
        sys.exit(f"token: {error}")
    command = [sys.executable, "-m", "ingest.tokens", *arguments]
    os.execve(command[0], command, environment(layout) | first.environment)


if __name__ == "__main__":
    main()
