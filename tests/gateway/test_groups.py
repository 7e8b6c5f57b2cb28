"""Each location that asks an ingest service has the circuit, time limit and limits of one group."""

import re
from typing import NamedTuple

import pytest

from gateway.render import GROUPS, PROBE, Config, render_all

INGEST = ["192.0.2.1:5001", "192.0.2.2:5001"]
PLAIN = Config(
    ingest=" ".join(INGEST), monitoring="192.0.2.3:4000", run="/run/way mark", owntracks="on"
)
TLS = PLAIN._replace(tls_certificate="/certificate.pem", tls_key="/key.pem")
EXPECTED = {
    "ingest.conf": {"location = /newbeacondetect"},
    "owntracks.conf": {"location = /owntracks", "location @owntracks_too_large"},
    "batch.conf": {"location = /api/v1/detections"},
    "short_read.conf": {
        "location = /_access",
        "location /api/",  # any address that is new there
        "location = /docs",
        "pollers: location /",
    },
    "history.conf": {
        "location ~ ^/api/v1/(staff/|coverage$|visits$)",
        "location = /extractbeacon",
    },
    "long_read.conf": {
        "location ~ ^/api/v1/(changes$|beacons$|beacons/|people$|people/|audit$|system/database$)",
        "location ~ ^/api/v1/(beacons/import$|people/import$)",
        "location /api/v1/session/oidc",
    },
}


PROBES = {"location = /_circuit/ingest", "location = /_circuit/reads"}
# A single one, past the circuits.
SERVICE = 'location ~ "^/_service/(?<number>\\d{1,3})(?<told>/metrics)?$"'


class Block(NamedTuple):
    """`name { directives; blocks }`"""

    name: str
    directives: list[str]
    blocks: list["Block"]

    def named(self, word: str) -> list["Block"]:
        return [block for block in self.blocks if block.name.split()[0] == word]

    def values(self, directive: str) -> list[str]:
        lines = (line.partition(" ") for line in self.directives)
        return [value.strip() for name, _, value in lines if name == directive]


def parse(text: str) -> Block:
    """Read a configuration that has each directive and each bracket on a line of its own."""
    stack = [Block("main", [], [])]
    for line in re.sub(r"(?m)(^|\s)#.*$", "", text).splitlines():
        if line.endswith("{"):
            block = Block(line.rstrip("{ ").strip(), [], [])
            stack[-1].blocks.append(block)
            stack.append(block)
        elif line.strip() == "}":
            stack.pop()
        elif line.strip():
            stack[-1].directives.append(line.strip().removesuffix(";"))
    assert len(stack) == 1
    return stack[0]


def locations(http: Block) -> dict[str, Block]:
    """Return every location by its name, with its server's name in front where it has one."""
    blocks: dict[str, Block] = {}
    for server in http.named("server"):
        prefix = "".join(f"{name}: " for name in server.values("server_name"))
        blocks |= {f"{prefix}{block.name}": block for block in server.named("location")}
        assert not any(block.named("location") for block in server.blocks)  # none is nested
    return blocks


def asks_ingest(http: Block, target: str) -> bool:
    """Tell whether a proxy_pass leads to the ingest services."""
    upstreams = {block.name.split()[1]: block for block in http.named("upstream")}
    name = target.removeprefix("http://").removesuffix("$without")
    servers = [value.split()[0] for value in upstreams[name].values("server")]
    return any(server in INGEST for server in servers)


@pytest.mark.parametrize("config", [PLAIN, TLS])
def test_each_location_that_asks_an_ingest_service_includes_one_group(config: Config) -> None:
    files = render_all(config)
    (http,) = parse(files["nginx.conf"]).named("http")
    included: dict[str, set[str]] = {name: set() for name in GROUPS}
    for name, location in locations(http).items():
        groups = [value.strip('"').rpartition("/")[2] for value in location.values("include")]
        assert (groups == [PROBE]) == (name in PROBES)
        if name in (*PROBES, SERVICE):
            continue
        # What a location says itself leads elsewhere: only a group leads to the ingest services.
        assert not any(asks_ingest(http, target) for target in location.values("proxy_pass")), name
        assert len(groups) <= 1, name
        for group in groups:
            included[group].add(name)
    assert included == EXPECTED
    assert set(files) == {"nginx.conf", *GROUPS, PROBE, "without_0.conf", "without_1.conf"}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_circuit_time_limit_and_limits(group: str) -> None:
    files = render_all(PLAIN)
    (http,) = parse(files["nginx.conf"]).named("http")
    block = parse(files[group])
    (target,) = block.values("proxy_pass")
    assert asks_ingest(http, target)
    assert len(block.values("proxy_read_timeout")) == 1
    circuit = "ingest" if group in ("ingest.conf", "owntracks.conf", "batch.conf") else "reads"
    assert target == f"http://{circuit}$without"
    # The client's own limit first (that is how the two are told apart), and never all places.
    (by_client, own), (by_place, all_places) = (
        value.split() for value in block.values("limit_conn")
    )
    keys = [value.split() for value in http.values("limit_conn_zone")]
    key_of = {zone.removeprefix("zone=").partition(":")[0]: key for key, zone in keys}
    assert (key_of[by_client], key_of[by_place]) == ("$binary_remote_addr", "$place")
    assert int(own) < int(all_places)


def test_a_service_that_is_silent_is_the_last_to_be_asked_in_the_circuits_without_it() -> None:
    services = [*INGEST, "192.0.2.4:5001"]
    files = render_all(PLAIN._replace(ingest=" ".join(services)))
    (http,) = parse(files["nginx.conf"]).named("http")
    for number, silent in enumerate(services):
        for server in [block for block in http.named("server") if block.values("set")]:
            assert any(
                f'silent_{silent}"' in value and f"_without_{number};" in value
                for value in server.values("if")
            )
        circuits = parse(files[f"without_{number}.conf"]).named("upstream")
        assert [circuit.name for circuit in circuits] == [
            f"upstream {circuit}_without_{number}" for circuit in ("ingest", "reads")
        ]
        for circuit in circuits:
            asked = [value.split() for value in circuit.values("server")]
            first = {words[0] for words in asked if words[-1] != "backup"}
            assert first == {*services, "127.0.0.1:1"} - {silent}
            assert {words[0] for words in asked if words[-1] == "backup"} == {*services}
