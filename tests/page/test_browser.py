"""The browser of the tests hears nothing of what else this machine does."""

import errno
import os
import subprocess
import sys

from tests.page.browser import CONFINED

ASK = "import socket; socket.socket(socket.AF_INET).close(); socket.socket(socket.AF_NETLINK)"


def test_it_does_not_hear_of_network_interfaces() -> None:
    environment = {**os.environ, "PROGRAM": sys.executable}
    asked = subprocess.run(
        [CONFINED, "-c", ASK], env=environment, capture_output=True, text=True, check=False
    )
    assert f"OSError: [Errno {errno.EAFNOSUPPORT}]" in asked.stderr
    assert asked.returncode == 1
