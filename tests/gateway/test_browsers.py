"""What a browser gets for the page of a stranger, and what it may do with an answer."""

import socket
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.gateway.conftest import OPEN, Gateway

LEGACY = ["/newbeacondetect", "/extractbeacon", "/retrieveformonitoring"]
OWN = ["/api/v1/staff", "/docs", "/monitoring", "/monitoring/static/a.js", "/nowhere", "/"]
ORIGIN = "https://wall.example"
SECURITY = {
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cross-Origin-Resource-Policy",
}
# Of what has none of its own, and of the gateway's own page.
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
OF_PAGES = {"Cross-Origin-Opener-Policy", "Permissions-Policy"}

Maker = Callable[..., Gateway]


def upstreams_answer(gateway: Gateway, headers: Mapping[str, str]) -> None:
    for upstream in [*gateway.ingest, gateway.monitoring]:
        upstream.answer(200, b"{}", dict(headers))


def reached(gateway: Gateway) -> int:
    return sum(len(upstream.requests) for upstream in [*gateway.ingest, gateway.monitoring])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Run a gateway whose services are always there: most of these tests are about its words."""
    shared = Gateway(tmp_path_factory.mktemp("browsers")).start()
    yield shared
    shared.close()


@pytest.fixture
def gateway(shared: Gateway) -> Gateway:
    """Return it with services that were asked nothing yet, and answer as new ones do."""
    for upstream in [*shared.ingest, shared.monitoring]:
        upstream.answer(200, b"ok")
        upstream.requests.clear()
    shared.answer_open()
    return shared


@pytest.fixture
def failing(make_gateway: Maker) -> Gateway:
    """Return a gateway whose services a test may end."""
    return make_gateway().start()


@pytest.fixture
def named(make_gateway: Maker) -> Gateway:
    """Return a gateway with names and a list of origins."""
    names = f"Way.Example gateway default way.example {'a' * 63}.{'b' * 63}.{'c' * 63}.example"
    return make_gateway(
        hostnames=names, allowed_origins=f"{ORIGIN} http://[2001:db8::7]:3000 {ORIGIN}"
    ).start()


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize(
    "host",
    ["stranger.example", "127.0.0.1.stranger.example:8080", "1.2.3.4x", "localhost.evil", "x"],
)
def test_a_name_that_is_not_ours_gets_nothing(gateway: Gateway, path: str, host: str) -> None:
    answer = gateway.request("GET", path, headers={"Host": host}, allow_redirects=False)
    assert answer.status_code == 421
    assert "WAYMARK_HOSTNAMES" in answer.json()["error"]
    assert answer.headers["Content-Type"] == "application/json"
    assert reached(gateway) == 0


@pytest.mark.parametrize("path", ["//api/v1/staff", "/%61pi/v1/staff", "/healthz/../api/v1/staff"])
def test_another_way_to_write_an_address_is_no_way_around(gateway: Gateway, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: stranger.example\r\nConnection: close\r\n\r\n"
    assert raw(gateway, request).startswith("HTTP/1.1 421 ")
    assert reached(gateway) == 0


def raw(gateway: Gateway, request: str) -> str:
    """Return the answer to a request that no client would write so."""
    with socket.create_connection(gateway.address, timeout=30) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:81", "localhost", "LOCALHOST:81", "10.1.2.3:8080", "[::1]:8080"],
)
def test_addresses_and_localhost_need_no_mention(gateway: Gateway, host: str) -> None:
    upstreams_answer(gateway, {})
    for path in ("/api/v1/staff", "/monitoring", "/docs"):
        assert gateway.request("GET", path, headers={"Host": host}).status_code == 200


def test_the_names_of_the_setting_are_good(named: Gateway) -> None:
    upstreams_answer(named, {})
    for host in ("way.example", "WAY.example:443", "gateway:8080", "default", "a" * 63):
        known = host != "a" * 63
        answer = named.request("GET", "/api/v1/staff", headers={"Host": host})
        assert answer.status_code == (200 if known else 421)
    long = f"{'a' * 63}.{'b' * 63}.{'c' * 63}.example"
    assert named.request("GET", "/monitoring", headers={"Host": long}).status_code == 200


def test_who_names_no_host_is_no_browser(gateway: Gateway) -> None:
    upstreams_answer(gateway, {})
    assert raw(gateway, "GET /api/v1/staff HTTP/1.0\r\n\r\n").startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), *((method, path) for method in ("GET", "POST") for path in LEGACY)],
)
def test_phones_and_health_checks_come_from_anywhere(
    gateway: Gateway, method: str, path: str
) -> None:
    headers = {"Host": "x", "Origin": "null", "Sec-Fetch-Site": "cross-site"}
    assert gateway.request(method, path, headers=headers).status_code == 200


WRITES = [
    ({}, 200),  # a phone, curl
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8080"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8080"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "https://stranger.example"}, 403),
    ({"Sec-Fetch-Site": "something new"}, 403),
    ({"Origin": "http://127.0.0.1:8080"}, 200),
    ({"Origin": "https://127.0.0.1:8080"}, 200),  # somebody else speaks TLS in front of us
    ({"Origin": "http://127.0.0.1:80801"}, 403),
    ({"Origin": "http://127.0.0.1:808"}, 403),
    ({"Origin": "http://127.0.0.1"}, 403),
    ({"Origin": "http://stranger.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "https://wall.example"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), WRITES)
def test_a_write_for_the_page_of_a_stranger_is_refused(
    gateway: Gateway, headers: dict[str, str], status: int
) -> None:
    upstreams_answer(gateway, {})
    headers = headers | {"Host": "127.0.0.1:8080"}
    for path in ("/api/v1/detections", "/api/v1/beacons/a", "/monitoring", "/monitoring/api/staff"):
        for method in ("POST", "PUT", "DELETE"):
            answer = gateway.request(method, path, headers=headers, data=b"{}")
            assert answer.status_code == status, (method, path)
            if status == 403:
                assert "WAYMARK_ALLOWED_ORIGINS" in answer.json()["error"]
        # A read changes nothing, and the browser keeps its answer from the stranger.
        assert gateway.request("GET", path, headers=headers).status_code == 200
    assert reached(gateway) == (4 if status == 403 else 16)


def test_listed_origins_may_read_and_write(named: Gateway) -> None:
    upstreams_answer(named, {"Access-Control-Allow-Credentials": "true"})
    for origin in (ORIGIN, "http://[2001:db8::7]:3000"):
        headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
        for method in ("GET", "POST", "PUT", "DELETE"):
            for path in ("/api/v1/beacons/a", "/monitoring/latest"):
                answer = named.request(method, path, headers=headers)
                assert answer.status_code == 200
                assert answer.headers["Access-Control-Allow-Origin"] == origin
                exposed = set(answer.headers["Access-Control-Expose-Headers"].split(", "))
                assert exposed >= {"X-Circuit-State", "X-Truncated", "ETag", "X-Taken-At", "Link"}
                assert answer.headers["Vary"] == "Origin"
                assert "Access-Control-Allow-Credentials" not in answer.headers
        wish = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "a, b"}
        before = reached(named)
        granted = named.request("OPTIONS", "/api/v1/beacons/a", headers=headers | wish)
        assert (granted.status_code, reached(named)) == (204, before)
        assert granted.headers["Access-Control-Allow-Origin"] == origin
        assert {"PUT", "DELETE"} <= set(granted.headers["Access-Control-Allow-Methods"].split(", "))
        assert granted.headers["Access-Control-Allow-Headers"] == "a, b"
        assert granted.headers["Vary"] == "Origin"


@pytest.mark.parametrize(
    "origin",
    [
        "http://wall.example",
        "https://wall.example:444",
        "https://wall.example.stranger.example",
        "https://stranger.example",
        "null",
        "",
    ],
)
def test_an_origin_has_to_be_listed_exactly(named: Gateway, origin: str) -> None:
    upstreams_answer(named, {})
    for method in ("GET", "OPTIONS"):
        for path in ("/api/v1/beacons/a", "/monitoring/latest", "/nowhere"):
            answer = named.request(method, path, headers={"Origin": origin})
            assert [name for name in answer.headers if name.startswith("Access-Control")] == []
            assert answer.headers["Vary"] == "Origin"  # a cache must not give it to the listed
    answer = named.request("PUT", "/api/v1/beacons/a", headers={"Origin": origin or "null"})
    assert answer.status_code == 403


def test_a_preflight_that_opens_nothing_says_what_to_set(gateway: Gateway) -> None:
    upstreams_answer(gateway, {})
    origin, wish = {"Origin": ORIGIN}, {"Access-Control-Request-Method": "POST"}
    for path in ("/api/v1/detections", "/api/v1/staff", "/docs"):
        answer = gateway.request("OPTIONS", path, headers=origin | wish)
        assert answer.status_code == 403
        assert "WAYMARK_ALLOWED_ORIGINS" in answer.json()["error"]
        assert [name for name in answer.headers if name.startswith("Access-Control")] == []
    assert reached(gateway) == 0
    for no_preflight in ({}, origin, wish):
        assert gateway.request("OPTIONS", "/api/v1/staff", headers=no_preflight).status_code != 403
    named = gateway.request(
        "OPTIONS", "/api/v1/staff", headers=origin | wish | {"Host": "strange.example"}
    )
    assert named.status_code == 421


@pytest.mark.parametrize("path", [*OWN, "/healthz", "/_circuit/ingest"])
@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8"])
def test_every_answer_says_what_a_browser_must_not_do(
    gateway: Gateway, path: str, kind: str
) -> None:
    upstreams_answer(gateway, {"Content-Type": kind})
    answer = gateway.request("GET", path, allow_redirects=False)
    is_page = answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers.get("Cross-Origin-Opener-Policy") == ("same-origin" if is_page else None)
    assert ("camera=()" in answer.headers.get("Permissions-Policy", "")) == is_page


def test_the_policy_of_a_page_is_its_own(gateway: Gateway) -> None:
    own = "default-src 'none'; script-src 'self'"
    upstreams_answer(gateway, {"Content-Type": "text/html", "Content-Security-Policy": own})
    for path in ("/monitoring", "/docs"):
        assert gateway.request("GET", path).headers["Content-Security-Policy"] == own


def test_errors_say_it_too(failing: Gateway) -> None:
    gateway = failing
    for upstream in [*gateway.ingest, gateway.monitoring]:
        upstream.close()
    asked = [
        ("GET", "/api/v1/staff", {}, 503),
        ("GET", "/monitoring", {}, 503),
        ("GET", "/api/v1/staff", {"Host": "x"}, 421),
        ("POST", "/api/v1/staff", {"Origin": "null"}, 403),
        ("GET", "/nowhere", {}, 404),
        ("POST", "/api/v1/beacons", {"Content-Length": "99999999"}, 413),
    ]
    for method, path, headers, status in asked:
        answer = gateway.request(method, path, headers=headers)
        assert answer.status_code == status
        assert set(answer.headers) >= SECURITY
        assert answer.headers["Content-Security-Policy"] == POLICY
        is_page = answer.headers["Content-Type"].startswith("text/html")
        assert (set(answer.headers) >= OF_PAGES) == is_page == (path == "/monitoring")


def test_a_legacy_answer_has_what_it_always_had(failing: Gateway, named: Gateway) -> None:
    always = {"Server", "Date", "Content-Type", "Content-Length", "Connection", "X-Request-ID"}
    always |= {"Access-Control-Allow-Origin", "Access-Control-Expose-Headers"}
    own = {"X-Own": "1", "Content-Type": "application/json"}
    never = {"Access-Control-Allow-Credentials": "true"}
    for refusal in (failing, named):
        upstreams_answer(refusal, own | never)
        for path in LEGACY:
            for origin in ("https://stranger.example", ORIGIN):
                answer = refusal.request("GET", path, headers={"Origin": origin})
                assert set(answer.headers) == always | {"X-Own"}
                assert answer.headers["Access-Control-Allow-Origin"] == "*"
                exposed = answer.headers["Access-Control-Expose-Headers"]
                assert exposed == "Retry-After, X-Circuit-State, X-Request-ID"
        for upstream in refusal.ingest:
            upstream.close()
        refusal.answer_open()
        for path in LEGACY[:2]:  # the third is in the cache
            answer = refusal.request("POST", path)
            assert (answer.status_code, answer.text) == (503, OPEN)
            assert set(answer.headers) == always | {"X-Circuit-State", "Retry-After"}
