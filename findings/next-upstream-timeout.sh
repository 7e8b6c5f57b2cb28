#!/usr/bin/env bash
# nginx: one would guess that proxy_next_upstream_timeout bounds how long a client waits for all tries, so
# that a server which is late with its 503 is followed by the next one as long as the client has time left.
# It bounds when the last try may begin: a failure that comes later is passed on to the client at once,
# though another server would have answered in milliseconds; one that begins in time may take its whole
# read time-out. It matters here: a limit below the read time-out turns each late 503 into a lost retry.
set -euo pipefail

work="$(mktemp -d)"
chmod 755 "$work" # for a worker that is another user
trap '[ ! -e "$work/pid" ] || kill "$(cat "$work/pid")"; [ -z "${servers:-}" ] || kill "$servers"; wait; rm -rf "$work"' EXIT

command -v nginx >/dev/null || apt-get install --quiet --yes nginx-light
nginx -v

cat >"$work/servers.py" <<'PYTHON'
import http.server
import sys
import threading
import time


def serve(port, status, seconds):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(seconds)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


late, good, first = map(int, sys.argv[1:])
threading.Thread(target=serve, args=(late, 503, 1.5)).start()
threading.Thread(target=serve, args=(first, 503, 0.5)).start()
serve(good, 200, 2.0)
PYTHON
read -r late good first gateway < <(python3 -c '
import random
print(*random.sample(range(20_000, 32_000), 4))')
python3 "$work/servers.py" "$late" "$good" "$first" &
servers=$!

cat >"$work/nginx.conf" <<CONF
pid $work/pid;
error_log $work/error.log;
events {}
http {
    access_log off;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    upstream late { server 127.0.0.1:$late max_fails=0; server 127.0.0.1:$good backup; }
    upstream soon { server 127.0.0.1:$first max_fails=0; server 127.0.0.1:$good backup; }
    proxy_next_upstream http_503;
    proxy_next_upstream_timeout 1s;
    proxy_read_timeout 10s;
    server {
        listen 127.0.0.1:$gateway;
        location /late { proxy_pass http://late; }
        location /soon { proxy_pass http://soon; }
    }
}
CONF
nginx -e "$work/error.log" -c "$work/nginx.conf"
until curl --silent --output /dev/null "http://127.0.0.1:$good/" && curl --silent --output /dev/null "http://127.0.0.1:$late/"; do sleep 0.1; done

ask() { curl --silent --output /dev/null --write-out '%{http_code} %{time_total}' "http://127.0.0.1:$gateway/$1"; }
late_answer="$(ask late)" soon_answer="$(ask soon)"
echo "limit 1 s; the first server says 503 after 1.5 s: the client gets $late_answer s (status, time)"
echo "limit 1 s; the first server says 503 after 0.5 s, the next 200 after 2 s: $soon_answer s"
[[ "$late_answer" == "503 "* && "$soon_answer" == "200 "* ]] || { echo "that is another behaviour than before"; exit 1; }
