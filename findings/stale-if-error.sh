#!/usr/bin/env bash
# nginx: one would guess that with "max-age=2, stale-if-error=6" no answer from the cache is older than 8 s.
# nginx takes both numbers from an answer's Cache-Control, but looks at the age when a request begins: who
# asks at 6.5 s and waits 3 s for a server that hangs gets a 200 that is 9.5 s old. Later it is a 504.
# It matters here: what is told to pollers as "at most 30 s old" is the two numbers and all waits together.
set -euo pipefail

work="$(mktemp -d)"
chmod 755 "$work" # for a worker that is another user
trap '[ ! -e "$work/pid" ] || kill "$(cat "$work/pid")"; [ -z "${server:-}" ] || kill "$server"; wait; rm -rf "$work"' EXIT

command -v nginx >/dev/null || apt-get install --quiet --yes nginx-light
nginx -v

cat >"$work/server.py" <<'PYTHON'
import http.server
import sys
import threading

asked = set()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path in asked:
            threading.Event().wait()  # each but the first of a path waits for ever
        asked.add(self.path)
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=2, stale-if-error=6")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.daemon_threads = True
server.serve_forever()
PYTHON
read -r port gateway < <(python3 -c '
import random
print(*random.sample(range(20_000, 32_000), 2))')
python3 "$work/server.py" "$port" &
server=$!

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
    proxy_cache_path $work/cache keys_zone=cache:1m;
    server {
        listen 127.0.0.1:$gateway;
        location / {
            proxy_pass http://127.0.0.1:$port;
            proxy_read_timeout 3s;
            proxy_cache cache;
            add_header X-Cache \$upstream_cache_status;
        }
    }
}
CONF
nginx -e "$work/error.log" -c "$work/nginx.conf"
until (: <>"/dev/tcp/127.0.0.1/$port") 2>"$work/refused"; do sleep 0.1; done

# ask PATH SECONDS: fills the cache, asks again after so long; prints status, cache, and the age in the end.
ask() {
    local url="http://127.0.0.1:$gateway/$1" began status
    curl --silent --output /dev/null "$url"
    began="$(date +%s)"
    sleep "$2"
    status="$(curl --silent --output /dev/null --write-out '%{http_code} %header{x-cache}' "$url")"
    echo "$status $(($(date +%s) - began))"
}
ask early 6.5 >"$work/early" &
first=$!
ask late 9.5 >"$work/late"
wait "$first"
early="$(cat "$work/early")" late="$(cat "$work/late")"
echo "max-age=2, stale-if-error=6, a time-out of 3 s; status, cache and age in seconds of the answer:"
echo "asked at 6.5 s: $early"
echo "asked at 9.5 s: $late"
[[ "$early" =~ ^"200 STALE "([0-9]+)$ && "${BASH_REMATCH[1]}" -gt 8 && "$late" == "504 "* ]] ||
    { echo "that is another behaviour than before"; exit 1; }
