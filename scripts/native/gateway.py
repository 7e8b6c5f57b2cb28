"""Run the gateway as a part of the native stack."""

import os
import signal
from pathlib import Path

from gateway import start
from gateway.render import Config
from scripts.native import leftovers


def main() -> None:
    """End the workers of a gateway that was killed, which hold its port, then be the gateway."""
    run = Path(Config.from_environment(os.environ).run)
    orphans = leftovers.find(run.parent, run, only_nginx=True)
    leftovers.end(orphans, signal.SIGQUIT, timeout_seconds=5)
    # nginx ends when this process is killed, as this process ends with supervisord.
    start.main(prefix=["setpriv", "--pdeathsig", "TERM"])


if __name__ == "__main__":
    main()
