"""gunicorn's settings for the ingest service; `INGEST_BIND` is the only variable."""

import gc
import os
from typing import Any

wsgi_app = "ingest.asgi:create_service()"
bind = os.environ.get("INGEST_BIND", "127.0.0.1:5001")

workers = 1  # one interpreter fits 64 MiB; two services give the second core
worker_class = "asgi"
asgi_loop = "uvloop"  # a tenth less CPU than asyncio's for single inserts
http_parser = "python"  # the C one refuses requests with many headers
# Longer than the gateway keeps an idle connection (30 s): it, not we, must close first, or a
# request can meet a closing connection and count as a failure.
keepalive = 75
timeout = 30
# What is under way ends in 3 s, but for a history that was never read, which the gateway then asks
# the other service for. Each stop takes this long, since the gateway's idle connections stay open.
graceful_timeout = 4
# All that the gateway lets through (lines of 8 KiB, 32 KiB in all) is ours to answer: gunicorn's
# own refusals are HTML.
limit_request_line = 8190
limit_request_field_size = 8192
limit_request_fields = 8192
worker_tmp_dir = "/dev/shm"  # the heartbeat file must not wait for a disk
control_socket_disable = True


def pre_fork(_server: Any, _worker: Any) -> None:
    """Keep the collector from what the master has read: a page that it marks is shared no more.

    That is 2 MiB of the 64.
    """
    gc.collect()
    gc.freeze()


def post_worker_init(_worker: Any) -> None:
    """Leave what lives as long as the process to itself: looking at it cost a tenth of the CPU.

    Nearly all else dies by its reference count.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
