#!/usr/bin/env bash
# pymongo 4.20.0: one would guess that `tls=True`, `tls=1` or `tls=yes` in a connection string turns TLS on, or is an error.
# It is a Python warning, which a service's log may not even have, and the client connects without TLS: a mongod that
# allows both has the log-in and all data in the clear. It matters here: MONGODB_URI is all that a database somewhere else
# is known by. So the ingest service and mongo/outside.py take such a warning for an error.
set -euo pipefail

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pymongo==4.20.0

cat >"$work/first_bytes.py" <<'PYTHON'
import socket
import threading
import warnings

from pymongo import MongoClient
from pymongo.errors import PyMongoError

HANDSHAKE = 0x16  # the first byte of what TLS says


def is_encrypted(option):
    """Tell whether a client's first byte is that of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        first = []

        def listen():
            connection, _ = server.accept()
            first.append(connection.recv(1)[0])
            connection.close()

        thread = threading.Thread(target=listen)
        thread.start()
        uri = f"mongodb://127.0.0.1:{server.getsockname()[1]}/?directConnection=true&{option}"
        with warnings.catch_warnings(record=True), MongoClient(uri, timeoutMS=2000) as client:
            try:
                client.admin.command("ping")
            except PyMongoError:
                pass
        thread.join()
        return first[0] == HANDSHAKE


said = {option: is_encrypted(option) for option in ("tls=true", "tls=True", "tls=1", "tls=yes")}
print(said)
raise SystemExit(said != {"tls=true": True, "tls=True": False, "tls=1": False, "tls=yes": False})
PYTHON
"$work/venv/bin/pip" list 2>/dev/null | grep -E "pymongo"
"$work/venv/bin/python" -W ignore "$work/first_bytes.py"
