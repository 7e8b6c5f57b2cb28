"""Paths that leave their folder, parameters and headers that would become others, strangers."""

from urllib.parse import quote

from tests.security.case import CREDENTIALS, Case

_CRLF = "%0d%0aX-Injected:%20yes"
_EVIL = "evil.example"
_HOST = "Host: localhost"

_PATHS = [
    "/monitoring/static/../../../../etc/passwd",
    "/monitoring/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/monitoring/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/monitoring/static/%252e%252e/%252e%252e/etc/passwd",
    "/monitoring/static/....//....//etc/passwd",
    "/monitoring/static/..%5c..%5cetc%5cpasswd",
    "/monitoring/static/..\\..\\etc\\passwd",
    "/monitoring/static/..;/..;/etc/passwd",
    "/monitoring/static/%c0%ae%c0%ae/etc/passwd",
    "/monitoring/static//etc/passwd",
    "/monitoring/static/%2fetc%2fpasswd",
    "/monitoring/static/page/dom.js%00.css",
    "/monitoring/static/",
    "/monitoring/static/../templates/base.html",
    "/monitoring/..%2fapi/v1/staff",
    "/monitoring/../nginx_status",
    "/monitoring/%2e%2e/nginx_status",
    "/monitoring/api/../../api/v1/system",
    "/monitoring/api/%2e%2e/system",
    "/monitoring/api/staff/..%2f..%2fsystem/detections",
    "/monitoring/api/beacons%3fx",
    "/monitoring/api//staff",
    "/monitoring/api/staff%0a/detections",
    "/../../../../etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/./healthz/../newbeacondetect",
    "/api/v1/../../nginx_status",
    "/api/v1/..%2f..%2fnginx_status",
    "/api/v1/staff/../beacons",
    "/api/v1/staff/%2e%2e/beacons",
    "/api/v1/staff/..%2fbeacons/detections",
    "/api/v1/staff/a%2fb/detections",
    "/api/v1/staff/a%00b/detections",
    "/api/v1/staff/a%0ab/detections",
    "/api/v1/staff/%7B%22$gt%22:%22%22%7D/detections",
    "/api/v1/staff/$where/detections",
    "/api/v1/staff//detections",
    "/api/v1/staff/",
    "//api/v1/staff",
    "/api//v1/staff",
    "/api/v1/beacons/..%2fstaff",
    "/api/v1/beacons/%7B%22$ne%22:1%7D",
    "/api/v1/beacons/C2A628384B08%00",
    "/api/v1/beacons/C2A628384B08/",
    "/API/V1/STAFF",
    "/%61pi/v1/staff",
    "/api%2fv1%2fstaff",
    "/newbeacondetect/",
    "/newbeacondetect;x=y",
    "/newbeacondetect%00",
    "/newbeacondetect%20",
    "/newbeacondetect/..%2f",
    "//newbeacondetect",
    f"//{_EVIL}/%2e%2e",
    f"//{_EVIL}",
    f"/\\{_EVIL}",
    "/monitoring//replay",
    f"/monitoring/%0d%0aLocation:%20http://{_EVIL}",
    "/_problem",
    "/_preflight",
    "/_no_page",
    "/_circuit/../healthz",
    "/retrieveformonitoring/%2e%2e/nginx_status",
]
_PARAMETERS = [
    f"/newbeacondetect?user_address=a{_CRLF}&beacon_address=C2A628384B08&rssi=-20",
    f"/newbeacondetect?user_address=honest&beacon_address=C2A628384B08{_CRLF}&rssi=-20",
    f"/newbeacondetect?user_address=honest&beacon_address=C2A628384B08&rssi=-20{_CRLF}",
    f"/newbeacondetect?user_address=honest&beacon_address=C2A628384B08&rssi=1&event_id=a{_CRLF}",
    f"/newbeacondetect?user_address=honest&beacon_address=C2A628384B08&rssi=1&timestamp=1{_CRLF}",
    "/newbeacondetect?user_address[$gt]=&beacon_address=C2A628384B08&rssi=-20",
    "/newbeacondetect?user_address=%7B%22$gt%22:%22%22%7D&beacon_address=C2A628384B08&rssi=-20",
    "/newbeacondetect?user_address=honest&beacon_address[$ne]=1&rssi=-20",
    f"/extractbeacon?staff_id=a{_CRLF}&start_time=0&end_time=1",
    f"/extractbeacon?staff_id=outer&start_time=0{_CRLF}&end_time=1",
    "/extractbeacon?staff_id[$ne]=&start_time=0&end_time=1",
    "/extractbeacon?staff_id=outer&start_time[$gt]=0&end_time=1",
    f"/retrieveformonitoring?x={_CRLF}",
    f"/api/v1/staff?after=a{_CRLF}",
    f"/api/v1/staff?limit=1{_CRLF}",
    "/api/v1/staff?after[$gt]=",
    "/api/v1/staff?limit[$gt]=1",
    f"/api/v1/now?level={_CRLF}",
    "/api/v1/now?level[$ne]=1",
    f"/api/v1/staff/honest/detections?from=0{_CRLF}",
    f"/api/v1/staff/honest/detections?format=csv{_CRLF}",
    f"/api/v1/staff/honest/detections?cursor=1-1{_CRLF}",
    "/api/v1/staff/nobody/detections?cursor=1-000000000000000000000000",
    f"/api/v1/staff/honest{_CRLF}/detections",
    f"/api/v1/changes?after=a{_CRLF}",
    f"/api/v1/changes?from=1{_CRLF}",
    "/api/v1/changes?after=%7B%22$gt%22:%22%22%7D",
    f"/api/v1/beacons/{_CRLF}",
    f"/api/v1/beacons/unknown?since=0{_CRLF}",
    f"/docs?{_CRLF}",
    f"/monitoring?person={_CRLF}",
    f"/monitoring/replay{_CRLF}",
    f"/monitoring/api/staff?after=a{_CRLF}",
    f"/healthz?{_CRLF}",
    f"/?{_CRLF}",
    f"/{_CRLF}",
]
# On an address that leads elsewhere, one that names the host, and one that errs.
_LEADING = ("/", "/monitoring/", "/monitoring//replay", "/api/v1//now", "/probe/")
_HEADERS = {
    "Host": f"Host: {_EVIL}",
    "Host with a port": f"Host: {_EVIL}:1",
    "Host with a login": f"Host: a@{_EVIL}",
    "X-Forwarded-Host": f"X-Forwarded-Host: {_EVIL}",
    "X-Forwarded-Server": f"X-Forwarded-Server: {_EVIL}",
    "Forwarded": f"Forwarded: host={_EVIL};proto=https",
    "X-Host": f"X-Host: {_EVIL}\r\nX-Original-Host: {_EVIL}",
    "X-Forwarded-Proto": "X-Forwarded-Proto: javascript",
    "X-Forwarded-Ssl": "X-Forwarded-Ssl: on\r\nX-Forwarded-Protocol: ssl",
    "X-Forwarded-Prefix": f"X-Forwarded-Prefix: //{_EVIL}\r\nX-Script-Name: //{_EVIL}",
    "X-Forwarded-For": "X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1",
    "X-Request-ID": "X-Request-ID: %0d%0aX-Injected: yes\r\nX-Request-ID: " + "a" * 4000,
    "X-Request-Start": "X-Request-Start: 1e308\r\nX-Request-Start: nan",
    "Cookie": "Cookie: session=%0d%0aX-Injected; =;;",
    "Origin": f"Origin: http://{_EVIL}\r\nReferer: http://{_EVIL}/",
    "Range": "Range: bytes=0-,0-,0-,0-\r\nIf-Range: x",
    "Accept-Encoding": "Accept-Encoding: gzip;q=x, *;q=2, \xff",
    "Accept": "Accept: " + "a/b," * 1000,
    "If-None-Match": 'If-None-Match: W/"' + '",' * 1000,
    "If-Modified-Since": "If-Modified-Since: Thu, 99 Foo 99999 99:99:99 GMT",
    "TE": "TE: trailers, gzip;q=0",
    "Max-Forwards": "Max-Forwards: -1",
    "Content-Type": "Content-Type: multipart/form-data; boundary=" + "a" * 4000,
}
# What a browser sends for the page of a stranger, and on which addresses.
_STRANGERS = {
    "name": f"Host: {_EVIL}",
    "name like an address": f"Host: 127.0.0.1.{_EVIL}:8080",
    "name and our word": f"Host: {_EVIL}\r\nSec-Waymark-Gateway: 1",
    "origin": f"Origin: http://{_EVIL}",
    "no origin": "Origin: null",
    "other site": "Sec-Fetch-Site: cross-site",
    "other port": "Origin: http://localhost:1",
}
_READS = ("/api/v1/staff", "//api/v1/staff", "/docs", "/monitoring", "/extractbeacon")
_WRITES = (
    ("POST", "/api/v1/detections"),
    ("PUT", "/api/v1/beacons/AABBCCDDEE77"),
    ("DELETE", "/api/v1/beacons/AABBCCDDEE77"),
    ("POST", "/monitoring"),
    ("POST", "/newbeacondetect"),
)
_ASKED = [*(("GET", path) for path in _READS), *_WRITES]


def cases() -> list[Case]:
    """Return all of them."""
    requests = [(f"path: {path}", path, _HOST) for path in _PATHS]
    requests += [(f"parameter: {path}", path, _HOST) for path in _PARAMETERS]
    requests += [
        (f"{name}: {path}", path, header) for name, header in _HEADERS.items() for path in _LEADING
    ]
    strange = [
        Case(f"stranger's {name}: {method} {path}", _request(method, path, header))
        for name, header in _STRANGERS.items()
        for method, path in _ASKED
    ]
    return [Case(name, _request("GET", path, header)) for name, path, header in requests] + strange


def _request(method: str, path: str, header: str) -> bytes:
    target = quote(path, safe="/%?&=:;$[]\\.")
    head = header if header.startswith("Host:") else f"{_HOST}\r\n{header}"
    line = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1")
    return line + CREDENTIALS + b"\r\n\r\n"
