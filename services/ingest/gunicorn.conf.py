"""gunicorn's settings for the ingest service; `INGEST_BIND` is the only variable."""

import os

from gunicorn.http import wsgi

wsgi_app = "ingest:create_app()"
bind = os.environ.get("INGEST_BIND", "127.0.0.1:5001")

workers = 1  # one interpreter fits 64 MiB; two services give the second core
worker_class = "gthread"
threads = 8
# Longer than the gateway keeps an idle connection (30 s): it, not we, must close first, or a
# request can meet a closing connection and count as a failure.
keepalive = 75
timeout = 30
graceful_timeout = 8
# All that the gateway lets through (lines of 8 KiB, 32 KiB in all) is ours to answer: gunicorn's
# own refusals are HTML.
limit_request_line = 8190
limit_request_field_size = 8192
limit_request_fields = 8192
worker_tmp_dir = "/dev/shm"  # the heartbeat file must not wait for a disk
control_socket_disable = True
sendfile = False  # see below: it would send the head by itself


class WholeResponse(wsgi.Response):
    """An answer whose head leaves together with its body.

    gunicorn sends the head first. A service killed between the two leaves the gateway half an
    answer, which it cannot get from the other service any more (measured: 1 of 150 kills under 60
    requests/s, more on a slow machine).
    """

    _head = b""

    def send_headers(self) -> None:
        """Make the head, and keep it until there is something to send it with."""
        if not self.headers_sent:
            lines = (f"{name}: {value}\r\n" for name, value in self.headers)
            self._head = "".join([*self.default_headers(), *lines, "\r\n"]).encode("latin-1")
            self.headers_sent = True

    def close(self) -> None:
        """End the answer, which may have no body."""
        self.send_headers()
        self._send_head()
        super().close()

    def _emit_body(self, data: bytes) -> None:
        if self.chunked:
            self._send_head()
            super()._emit_body(data)
        else:
            self._send_head(data)

    def _send_head(self, more: bytes = b"") -> None:
        whole, self._head = self._head + more, b""
        self.sock.sendall(whole)


wsgi.Response = WholeResponse
