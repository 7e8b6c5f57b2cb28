"""A real headless Chromium, as Debian packages it."""

import shutil

from playwright.sync_api import Browser, Playwright

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
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise FileNotFoundError("no Chromium here: ./scripts/test installs it")
    return playwright.chromium.launch(executable_path=program, args=OPTIONS)
