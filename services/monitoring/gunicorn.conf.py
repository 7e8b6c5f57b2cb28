"""gunicorn's settings for the monitoring service; `MONITORING_BIND` is the only variable."""

import gc
import os
from typing import Any

from common import log_lines
from patient_worker import PatientWorker

wsgi_app = "monitoring:create_app()"
bind = os.environ.get("MONITORING_BIND", "127.0.0.1:4000")

workers = 1
worker_class = PatientWorker
# Whoever waits longest makes room for one more (patient_worker.py). The kernel may hold 24 KiB of
# each: all of them 6 MiB of the 48.
worker_connections = 256
# A page waiting for the gateway must not hold up the fallback answers that the gateway asks for.
threads = 8
keepalive = 75  # longer than the gateway's 30 s, as in the ingest service
timeout = 30
graceful_timeout = 8
# Accept every request that the gateway passes on (lines of 16 KiB, 32 KiB in all): gunicorn's
# own refusals are HTML.
limit_request_line = 0  # patient_worker.py bounds the whole; gunicorn knows no number above 8190
limit_request_field_size = 16384
limit_request_fields = 8192
worker_tmp_dir = "/dev/shm"
control_socket_disable = True


def pre_fork(_server: Any, _worker: Any) -> None:
    """Keep the collector from what the master has read: a page that it marks is shared no more."""
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Start the health checks now, not with the first visitor: the page tells since when."""
    log_lines.set_up()
    worker.wsgi.extensions["health_monitor"].start()
