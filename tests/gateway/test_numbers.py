"""How the gateway's numbers depend on each other, on the services', and on what is documented.

Some of them matter only after minutes, or with thousands of clients: no test waits for those.
"""

import re

from gateway.render import Config, render_all
from ingest.__main__ import GRACEFUL_SECONDS
from ingest.config import Config as IngestConfig
from monitoring.config import Config as MonitoringConfig
from tests.gateway.test_groups import Block, locations, parse

CONFIG = Config(tls_certificate="/certificate.pem", tls_key="/key.pem")
FILES = render_all(CONFIG)
MAIN = parse(FILES["nginx.conf"])
(HTTP,) = MAIN.named("http")
GATEWAY = HTTP.named("server")[0]
LOCATIONS = locations(HTTP)
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def one(block: Block, directive: str) -> str:
    (value,) = block.values(directive)
    return value


def seconds(block: Block, directive: str) -> float:
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", one(block, directive))
    assert match, directive
    return int(match[1]) * UNITS[match[2]]


def group(name: str) -> Block:
    return parse(FILES[name])


def places() -> dict[str, int]:
    """Return how many requests of each kind may be under way."""
    limits = re.findall(r"limit_conn (\w+) (\d+);", "\n".join(FILES.values()))
    return {zone: int(number) for zone, number in limits if not zone.endswith("clients")}


def test_there_is_a_connection_for_each_place_and_its_service() -> None:
    (events,) = MAIN.named("events")
    connections = int(one(events, "worker_connections"))
    assert connections >= 2 * sum(places().values()) * 1.3
    assert int(one(MAIN, "worker_rlimit_nofile")) > connections
    assert one(MAIN, "worker_processes") == "1"  # two would have two states of each circuit


def test_a_retry_begins_after_one_wait_and_not_after_two() -> None:
    assert seconds(HTTP, "proxy_connect_timeout") == 1
    for waits in (HTTP, group("batch.conf")):
        wait = seconds(waits, "proxy_read_timeout")
        assert wait < seconds(waits, "proxy_next_upstream_timeout") < 2 * wait
    assert one(HTTP, "proxy_next_upstream_tries") == "3"
    assert one(HTTP, "proxy_next_upstream").split() == [
        *("error", "timeout", "http_502", "http_503", "http_504", "non_idempotent")
    ]
    assert one(HTTP, "proxy_ignore_client_abort") == "on"
    # A history is waited for once, but what a service gives up at its end the other one answers.
    again = seconds(group("history.conf"), "proxy_next_upstream_timeout")
    assert GRACEFUL_SECONDS < again < seconds(group("history.conf"), "proxy_read_timeout") <= 8
    assert seconds(group("long_read.conf"), "proxy_next_upstream_timeout") == again
    for name in ("limit_conn", "proxy_pass"):
        assert group("history.conf").values(name) == group("long_read.conf").values(name)
    wait = seconds(group("short_read.conf"), "proxy_read_timeout")
    assert wait == seconds(HTTP, "proxy_read_timeout") == 3
    # A phone has 3 s for both; a service says after its time-out that the database is away.
    wait = seconds(group("ingest.conf"), "proxy_read_timeout")
    assert IngestConfig().mongodb_timeout_ms / 1000 + 0.5 <= wait <= 3 - 0.5
    assert wait < seconds(HTTP, "proxy_next_upstream_timeout") < 2 * wait


def test_who_asks_waits_longer_than_who_is_asked() -> None:
    page = seconds(LOCATIONS["location /monitoring"], "proxy_read_timeout")
    assert page > MonitoringConfig().gateway_timeout_seconds + 1
    pollers = seconds(LOCATIONS["location = /retrieveformonitoring"], "proxy_read_timeout")
    least = seconds(group("short_read.conf"), "proxy_read_timeout")
    assert pollers > seconds(HTTP, "proxy_next_upstream_timeout") + least - 1
    probe = group("probe.conf")
    tries = int(one(probe, "proxy_next_upstream_tries"))
    assert tries * seconds(probe, "proxy_read_timeout") < MonitoringConfig().gateway_timeout_seconds
    fallback = seconds(LOCATIONS["location @circuit_open"], "proxy_read_timeout")
    assert fallback < seconds(HTTP, "proxy_read_timeout")


def test_nobody_is_waited_for_for_ever() -> None:
    assert seconds(HTTP, "client_header_timeout") <= 10
    assert seconds(HTTP, "client_body_timeout") <= 10
    assert seconds(HTTP, "send_timeout") <= 30
    assert seconds(MAIN, "worker_shutdown_timeout") <= 20
    assert one(HTTP, "reset_timedout_connection") == "on"
    assert 60 < seconds(HTTP, "keepalive_timeout") <= 75  # a phone may pause for 30 s


def test_what_is_kept_on_the_disk_and_of_sessions_is_bounded() -> None:
    cache = one(HTTP, "proxy_cache_path")
    assert {"max_size=16m", "inactive=1m", "keys_zone=pollers:64k"} <= set(cache.split())
    assert one(GATEWAY, "ssl_session_tickets") == "off"  # a key that lives as long as the process
    assert seconds(GATEWAY, "ssl_session_timeout") <= 3600
    assert one(GATEWAY, "ssl_session_cache") == "shared:tls:1m"
    assert one(HTTP, "server_tokens") == "off"
