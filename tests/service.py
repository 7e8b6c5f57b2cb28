"""An ingest service as it ships, and what a phone does with it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from scripts.processes.service import IngestService
from tests.client import Client


class Service(IngestService, Client):
    """An ingest service on a port and with a spool of its own; `settings` are its environment."""

    def __init__(
        self, mongodb_uri: str, folder: Path, prefix: Sequence[str] = (), **settings: object
    ) -> None:
        IngestService.__init__(self, mongodb_uri, folder, prefix=prefix, settings=settings)
        Client.__init__(self, self.url)


Kind = TypeVar("Kind", bound=Service)


@contextmanager
def running(*services: Kind) -> Iterator[list[Kind]]:
    """Start services; they are killed at the end."""
    with ExitStack() as held:
        for service in services:
            held.callback(service.kill)
            service.start()
        yield list(services)
