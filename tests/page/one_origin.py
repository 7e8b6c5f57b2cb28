"""A page and an API behind one address, without a gateway."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from werkzeug.serving import make_server

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


@contextmanager
def one_origin(api: Wsgi, page: Wsgi, port: int = 0) -> Iterator[str]:
    """Serve both; return their address."""

    def both(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        environ["HTTP_X_FORWARDED_PROTO"] = "http"
        environ["HTTP_X_FORWARDED_FOR"] = environ["REMOTE_ADDR"]
        app = api if environ["PATH_INFO"].startswith("/api/") else page
        return app(environ, start)

    server = make_server("127.0.0.1", port, both, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
