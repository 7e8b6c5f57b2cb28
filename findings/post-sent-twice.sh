#!/usr/bin/env bash
# Java: one would guess that HttpURLConnection sends a POST once, as it is no method to repeat. Where the
# connection ends before the answer, it sends it again by itself, on a new connection, too: the program sees
# one 200, the server has stored two. Told the length first (setFixedLengthStreamingMode), it sends it once.
# It matters here: apps write so, and without an `event_id` each of the two is a detection.
set -euo pipefail

work="$(mktemp -d)"
trap '[ -z "${server:-}" ] || kill "$server"; wait; rm -rf "$work"' EXIT

command -v javac >/dev/null || apt-get install --quiet --yes --no-install-recommends default-jdk-headless
java -version 2>&1 | head -1

# It reads each request, ends the first connection without an answer, and says 200 on the next.
cat >"$work/server.py" <<'PYTHON'
import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        if len(self.bodies) == 1:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        bodies = str(len(self.bodies)).encode()
        self.bodies.clear()
        self.send_response(200)
        self.send_header("Content-Length", str(len(bodies)))
        self.end_headers()
        self.wfile.write(bodies)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
cat >"$work/Main.java" <<'JAVA'
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;

class Main {
    public static void main(String[] arguments) throws Exception {
        var connection = (HttpURLConnection) new URI(arguments[0]).toURL().openConnection();
        connection.setRequestMethod("POST");
        connection.setDoOutput(true);
        if (arguments.length > 1) connection.setFixedLengthStreamingMode(9);
        try (var body = connection.getOutputStream()) {
            body.write("detection".getBytes());
        }
        try {
            System.out.print(connection.getResponseCode());
        } catch (IOException failure) {
            System.out.print("an error");
        }
    }
}
JAVA
python3 "$work/server.py" >"$work/port" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done
url="http://127.0.0.1:$(cat "$work/port")/"

default="$(java "$work/Main.java" "$url")" default_sent="$(curl --silent "$url")"
told="$(java "$work/Main.java" "$url" fixed)" told_sent="$(curl --silent "$url")"
echo "as it is: the program sees $default, the server has read $default_sent"
echo "told the length: the program sees $told, the server has read $told_sent"
[ "$default $default_sent, $told $told_sent" = "200 2, an error 1" ] || { echo "that is another behaviour than before"; exit 1; }
