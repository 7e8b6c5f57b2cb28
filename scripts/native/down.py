"""./scripts/down: stop all that ./scripts/up started on this data, and nothing else."""

import argparse
import signal
import sys
from pathlib import Path

from scripts.native import leftovers
from scripts.native.layout import DEFAULT_DATA, DamagedError, Layout, StackError
from scripts.native.supervisor import Supervisor


def main() -> None:
    """Run the command; stopping what does not run is no error."""
    parser = argparse.ArgumentParser(prog="./scripts/down", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the stack")
    data = parser.parse_args().data.resolve()
    try:
        print(down(data))
    except (StackError, OSError) as error:
        sys.exit(f"down: {error}")


def down(data: Path) -> str:
    """Stop the stack in `data`; return what was done."""
    was_running = False
    try:
        layout = Layout.saved(data)
        if layout is None:
            return f"nothing was ever started on {data}"
        was_running = _shut_down(layout)
    except DamagedError:
        print("  nobody knows its ports any more: ending every part by pid", flush=True)
    for _ in range(3):  # what was just starting the stack again may have started more
        left = leftovers.find(data, data / "run")
        leftovers.end(left, signal.SIGTERM, timeout_seconds=20)
        was_running = was_running or bool(left)
    return "stopped" if was_running else "nothing was running"


def _shut_down(layout: Layout) -> bool:
    """Stop supervisord and its parts; tell whether it ran."""
    supervisor = Supervisor(layout)
    was_running = supervisor.running()
    try:
        if was_running:
            supervisor.shutdown()
    except StackError as error:
        print(f"{error}\n  ending it and every part by pid", flush=True)
        pid = supervisor.pid()
        hung = [
            process for process in leftovers.find(layout.data, layout.run) if process.pid == pid
        ]
        leftovers.end(hung, signal.SIGKILL, timeout_seconds=5)
    return was_running


if __name__ == "__main__":
    main()
