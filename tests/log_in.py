"""A person's browser, after the log-in."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests

from scripts.processes.waiting import eventually


@contextmanager
def logged_in(url: str, printed: str) -> Iterator[requests.Session]:
    """Log in with the name and the password that the command `account create` told."""
    body = {"name": printed.split()[0], "password": printed.split()[-1]}
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Connection"] = "close"  # so that both services are asked
        eventually(lambda: session.post(f"{url}/api/v1/session", json=body).ok, 60)
        yield session
