"""Run the ingest service: `python -m ingest`.

One process, and no master beside it: gunicorn's costs 12 MiB of the 64 (docs/measurements.md).
Whoever starts the service (Docker, supervisord) starts it again when it ends.
"""

import asyncio
import faulthandler
import gc
import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from socket import socket
from types import FrameType

import uvicorn

from common import log_lines
from ingest import process
from ingest.asgi import create_service
from ingest.config import Config
from ingest.web.http_protocol import Protocol

# Longer than the gateway keeps an idle connection (30 s): it, not we, must close first, or a
# request can meet a closing connection and count as a failure.
KEEP_ALIVE_SECONDS = 75
# What is under way ends in 3 s, but for much that was never read, or a stack of batches: after this
# it gets a 503, which the gateway asks the other service for.
GRACEFUL_SECONDS = 4
# An event loop that stands still for so long never goes on: it is ended, with a trace of all
# threads in the log.
HANG_SECONDS = 30
TICK_SECONDS = 5.0
# After so many ticks freed memory is given back: some 1.5 MiB under load.
TICKS_OF_MEMORY = 4


class Server(uvicorn.Server):
    """uvicorn's server, which ends when its event loop hangs.

    It wakes once in five seconds instead of ten times a second, which was a third of what an idle
    service takes. `Protocol` tells the date.
    """

    _wake: Callable[[], object] | None = None

    def __init__(self, config: uvicorn.Config, end_waits: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_waits = end_waits

    async def main_loop(self) -> None:
        """Move the end of patience on until the service is to end, which is seen at once."""
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = partial(loop.call_soon_threadsafe, ended.set)
        ticks = itertools.count(1)
        while not await self.on_tick(1):  # not the one that writes the date
            if next(ticks) % TICKS_OF_MEMORY == 0:
                process.give_back_memory()
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), TICK_SECONDS)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Let what is under way end, and what waits for changes at once."""
        self._end_waits()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note that a signal wants the end."""
        super().handle_exit(sig, frame)
        if self._wake:
            self._wake()


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    log_lines.set_up()
    config = Config.from_environment()
    host, _, port = config.ingest_bind.rpartition(":")
    service = create_service(config)
    # What lives as long as the process is no business of the collector, which cost a tenth of the
    # CPU. Nearly all else dies by its reference count.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    settings = uvicorn.Config(
        service,
        host=host.strip("[]"),
        port=int(port),
        http=Protocol,
        ws="none",
        loop="uvloop",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    Server(settings, service.end_waits).run()


if __name__ == "__main__":
    main()
