"""A real headless Chromium, as Debian packages it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright

from tests.needs import need_browser

CONFINED = Path(__file__).with_name("confined.py")
STRANGER = "stranger.example"  # a name that leads to this machine
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {STRANGER} 127.0.0.1",
]


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """Run the browser that ./scripts/test installs.

    It ends the process of a page that is closed at any moment, also between making a file of shared
    memory and unlinking it: what is left so is in a folder of its own, and goes with it.
    """
    program = need_browser()
    with tempfile.TemporaryDirectory(prefix="browser-") as folder:
        browser = playwright.chromium.launch(
            executable_path=CONFINED,
            args=OPTIONS,
            env={**os.environ, "PROGRAM": program, "TMPDIR": folder},
        )
        try:
            yield browser
        finally:
            browser.close()
