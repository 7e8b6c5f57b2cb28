#!/usr/bin/env bash
# Locust 2.47.0 with a master and workers: one would guess that what was answered is counted, all the more with
# --stop-timeout, which lets users have their last answers. At the end of --run-time the master tells its workers
# to quit and gives them 0.5 s for their last figures. An answer that takes longer is awaited by the worker, and
# counted nowhere. It matters here: what Locust says was acknowledged is compared with what is stored. So
# loadtests/locustfile.py has the master wait for its workers.
set -euo pipefail

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check locust==2.47.0

cat >"$work/locustfile.py" <<'PYTHON'
from locust import HttpUser, constant, task


class User(HttpUser):
    wait_time = constant(100)

    @task
    def ask(self):
        self.client.get("/")
PYTHON

cat >"$work/compare.py" <<'PYTHON'
import http.server
import json
import socket
import subprocess
import sys
import threading
import time

USERS, ANSWER_SECONDS = 4, 6
answered = []


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(ANSWER_SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        answered.append(self.path)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
threading.Thread(target=server.serve_forever, daemon=True).start()
with socket.create_server(("127.0.0.1", 0)) as free:
    port = str(free.getsockname()[1])


def locust(*options):
    command = [sys.executable, "-m", "locust", "-f", "locustfile.py", *options]
    return subprocess.Popen(
        command, cwd=sys.argv[1], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


where = f"http://127.0.0.1:{server.server_port}"
how = ["--headless", "--json", "--users", str(USERS), "--spawn-rate", "4", "--run-time", "3s"]
how += ["--stop-timeout", "30", "--host", where, "--expect-workers", "1"]
master = locust("--master", "--master-bind-port", port, *how)
worker = locust("--worker", "--master-port", port)
told = sum(row["num_requests"] for row in json.loads(master.communicate()[0]))
worker.communicate()
print(f"{len(answered)} requests were answered, and the master tells {told}")
raise SystemExit(len(answered) != USERS or told != 0)
PYTHON
"$work/venv/bin/pip" list 2>/dev/null | grep -E "^locust "
"$work/venv/bin/python" "$work/compare.py" "$work"
