#!/usr/bin/env bash
# a2wsgi 1.10.10 under uvicorn 0.54.0: one would guess that a WSGI application's generator ends soon after its
# client has hung up, as it does under a WSGI server, where writing to the closed connection raises an error.
# It is run to its end: uvicorn takes what is sent to nobody without an error, and the adapter never asks
# whether the client is there. It matters here: a history is read from the database piece by piece, and one
# that is asked for again and again by somebody who leaves would be read whole each time. So ingest has its
# own adapter, which asks (services/ingest/ingest/web/flask_bridge.py); it also takes less CPU for each answer.
set -euo pipefail

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check a2wsgi==1.10.10 uvicorn==0.54.0

cat >"$work/leave.py" <<'PYTHON'
import socket
import threading
import time

import uvicorn
from a2wsgi import WSGIMiddleware

PIECES = 2000
made = 0


def application(environ, start_response):
    global made
    start_response("200 OK", [("Content-Type", "text/plain")])
    for _ in range(PIECES):
        made += 1
        yield b"x" * 16_384


server = uvicorn.Server(uvicorn.Config(WSGIMiddleware(application), port=0, log_level="error"))
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.05)
client = socket.create_connection(server.servers[0].sockets[0].getsockname())
client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
client.recv(1000)
client.close()
left_at = made
seen = -1
while seen != made:
    seen = made
    time.sleep(2)
print(f"the client left at piece {left_at}; {made} of {PIECES} were made")
raise SystemExit(made != PIECES or left_at == PIECES)
PYTHON
"$work/venv/bin/pip" list 2>/dev/null | grep -E "a2wsgi|uvicorn"
"$work/venv/bin/python" "$work/leave.py"
