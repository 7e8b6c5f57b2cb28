"""Run the ingest service: `python -m ingest`.

One process, and no master beside it: gunicorn's costs 12 MiB of the 64 (docs/measurements.md).
Whoever starts the service (Docker, supervisord) starts it again when it ends.
"""

import faulthandler
import gc
import logging

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ingest.asgi import create_service
from ingest.config import Config

# Longer than the gateway keeps an idle connection (30 s): it, not we, must close first, or a
# request can meet a closing connection and count as a failure.
KEEP_ALIVE_SECONDS = 75
# What is under way ends in 3 s, but for a history that was never read, which the gateway then asks
# the other service for.
GRACEFUL_SECONDS = 4
# The gateway lets 32 KiB of header fields through, and a line of 8 KiB.
MAX_HEADER_BYTES = 64 * 1024
# An event loop that stands still for so long never goes on: it is ended, with a trace of all
# threads in the log.
HANG_SECONDS = 30


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with a bound on the header, which it would collect without end."""

    _in_header = False
    _header_bytes = 0  # so far, of a header that came in several parts

    def on_message_begin(self) -> None:
        """Note that a header begins."""
        self._in_header = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that it ends; what names no version, as 30 years ago, is no request."""
        self._in_header = False
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("not HTTP/1")  # uvicorn answers 400
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take what came, and refuse a header that is too long."""
        in_header = self._in_header
        super().data_received(data)
        if not (in_header and self._in_header):
            self._header_bytes = 0
            return
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The header is too long.")


class Server(uvicorn.Server):
    """uvicorn's server, which ends when its event loop hangs."""

    async def on_tick(self, counter: int) -> bool:
        """Move the end of patience on, ten times a second."""
        if counter % 10 == 0:
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        return await super().on_tick(counter)


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = Config.from_environment()
    host, _, port = config.ingest_bind.rpartition(":")
    service = create_service(config)
    # What lives as long as the process is no business of the collector, which cost a tenth of the
    # CPU. Nearly all else dies by its reference count.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    Server(
        uvicorn.Config(
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
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
        )
    ).run()


if __name__ == "__main__":
    main()
