"""A real headless Chromium, as Debian packages it."""

import shutil

from playwright.sync_api import Browser, Playwright

from tests.needs import need

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
NAMES = ("chromium", "chromium-browser", "google-chrome")


def launch(playwright: Playwright) -> Browser:
    """Start the browser that ./scripts/test installs."""
    need(*NAMES)
    program = next(filter(None, map(shutil.which, NAMES)))
    return playwright.chromium.launch(executable_path=program, args=OPTIONS)
