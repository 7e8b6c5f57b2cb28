"""The files for Swarm and Kubernetes name what is there: images, settings, secrets, each other.

./scripts/lint checks them by their schemas; nothing here runs them.
"""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from scripts.processes import ROOT
from tests.test_docs import settings

KUBERNETES = ROOT / "deploy" / "kubernetes"
SWARM = yaml.safe_load((ROOT / "deploy" / "swarm" / "docker-compose.yml").read_text())
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
OBJECTS: list[dict[str, Any]] = [
    thing
    for name in KUSTOMIZATION["resources"]
    for thing in yaml.safe_load_all((KUBERNETES / name).read_text())
]
PODS = {
    thing["metadata"]["name"]: thing["spec"]["template"]
    for thing in OBJECTS
    if "template" in thing.get("spec", {})
}
GROWING = (ROOT / "docs" / "growing.md").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
TARGETS = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE))
PORTS = {"gateway": 8080, "ingest": 5001, "monitoring": 4000}


def target(name: str) -> str:
    """Return what the Dockerfile says of an image."""
    return re.split(r"^FROM \S+ AS ", DOCKERFILE, flags=re.MULTILINE)[
        1 + re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE).index(name)
    ]


def container(pod: str) -> dict[str, Any]:
    (only,) = PODS[pod]["spec"]["containers"]
    return dict(only)


def within(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each mapping of a document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from within(inner)


def test_each_file_is_a_resource() -> None:
    files = {file.name for file in KUBERNETES.iterdir()} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files


@pytest.mark.parametrize("name", PORTS)
def test_an_image_has_the_health_check_and_its_port(name: str) -> None:
    assert f"HEALTH_PORT={PORTS[name]} " in target(name)
    assert 'CMD ["alive"]' in target(name)
    assert (ROOT / "services" / "alive").stat().st_mode & 0o111


class Answer(BaseHTTPRequestHandler):
    """Answers /healthz with the status of its class."""

    status = 200

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("status", [200, 503, None])
def test_what_answers_200_is_alive(status: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        port = server.server_address[1]
        if status is None:
            server.socket.close()  # nobody listens there
        else:
            monkeypatch.setattr(Answer, "status", status)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {"HEALTH_PORT": str(port), "PATH": os.defpath}
        done = subprocess.run(
            [ROOT / "services" / "alive"], env=environment, check=False, capture_output=True
        )
        assert (done.returncode == 0) == (status == 200)
        if status is not None:
            server.shutdown()


def test_what_is_built_on_the_gateway_has_no_health_check_of_it() -> None:
    assert "HEALTHCHECK NONE" in target("acme")


@pytest.mark.parametrize("pod", PODS)
def test_a_pod_is_of_an_image_of_ours(pod: str) -> None:
    image = container(pod)["image"]
    assert image in TARGETS
    assert image in {entry["name"] for entry in KUSTOMIZATION["images"]}


def test_swarm_has_the_same_parts() -> None:
    images = {name: service["image"] for name, service in SWARM["services"].items()}
    assert images.keys() == set(PODS) - {"database"} == set(PORTS)
    for name, image in images.items():
        assert f"/{name}:$" in image


def names_of_settings() -> Iterator[str]:
    for pod in PODS:
        yield from (variable["name"] for variable in container(pod).get("env", ()))
    for generated in KUSTOMIZATION["configMapGenerator"]:
        yield from (literal.partition("=")[0] for literal in generated["literals"])
    for service in SWARM["services"].values():
        yield from service["environment"]


@pytest.mark.parametrize("name", sorted(set(names_of_settings())))
def test_each_setting_exists(name: str) -> None:
    assert name in settings()


def test_each_secret_is_made_by_a_command_of_the_document() -> None:
    for name in (*SWARM["secrets"], *SWARM["configs"]):
        loop = GROWING.partition("for name in ")[2].partition(";")[0].split()
        assert name in loop or re.search(rf"docker (secret|config) create {name} ", GROWING), name
    for pod in PODS.values():
        for mapping in within(pod):
            if reference := mapping.get("secretKeyRef"):
                made = GROWING.partition(f"secret generic {reference['name']} ")[2]
                command = re.split(r"(?<!\\)\n", made)[0]
                assert re.search(rf"[ '\"]{reference['key']}\b", command), reference
            if name := mapping.get("secretName"):
                assert re.search(rf"create secret \w+ {name} ", GROWING), name


def test_each_reference_within_kubernetes_leads_somewhere() -> None:
    generated = {entry["name"] for entry in KUSTOMIZATION["configMapGenerator"]}
    for pod, template in PODS.items():
        own = container(pod)
        volumes = {volume["name"] for volume in template["spec"].get("volumes", ())}
        workload = next(
            thing for thing in OBJECTS if thing.get("spec", {}).get("template") is template
        )
        claims = workload["spec"].get("volumeClaimTemplates", ())
        volumes |= {claim["metadata"]["name"] for claim in claims}
        assert {mount["name"] for mount in own.get("volumeMounts", ())} == volumes
        for source in own.get("envFrom", ()):
            assert source["configMapRef"]["name"] in generated
        ports = {port["name"]: port["containerPort"] for port in own.get("ports", ())}
        for probe in ("livenessProbe", "readinessProbe"):
            if probe in own:  # never /readyz: without a database detections have to come in
                get = own[probe]["httpGet"]
                assert (ports[get["port"]], get["path"]) == (PORTS[pod], "/healthz")
    labels = {
        template["metadata"]["labels"]["app"] for pod, template in PODS.items() if pod in PORTS
    }
    assert labels == set(PORTS)
    for thing in OBJECTS:
        selector = thing.get("spec", {}).get("selector")
        if selector:
            assert selector.get("matchLabels", selector)["app"] in labels
        if thing["kind"] == "Service":
            chosen = container(selector["app"])["ports"]
            for port in thing["spec"]["ports"]:
                assert port["targetPort"] in {named["name"] for named in chosen}


def test_addresses_of_parts_are_services_with_that_port() -> None:
    services = {
        f"{thing['metadata']['name']}:{port['port']}"
        for thing in OBJECTS
        if thing["kind"] == "Service"
        for port in thing["spec"]["ports"]
    }
    given = {
        variable["name"]: variable.get("value")
        for pod in PODS
        for variable in container(pod).get("env", ())
    }
    assert given["GATEWAY_INGEST"] in services
    assert given["GATEWAY_MONITORING"] in services
    assert given["GATEWAY_URL"].removeprefix("http://") in services


@pytest.mark.parametrize("pod", PODS)
def test_a_pod_has_no_more_rights_than_a_container_of_ours(pod: str) -> None:
    rights = container(pod)["securityContext"]
    assert rights["runAsUser"] == (999 if pod == "database" else 10001)
    assert rights["readOnlyRootFilesystem"] is True
    assert rights["allowPrivilegeEscalation"] is False
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert PODS[pod]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert PODS[pod]["spec"]["automountServiceAccountToken"] is False
    # Else a Service named gateway gives each pod variables GATEWAY_..., among our own.
    assert PODS[pod]["spec"]["enableServiceLinks"] is False
    assert container(pod)["resources"]["limits"]["memory"].endswith("Mi")


@pytest.mark.parametrize("name", SWARM["services"])
def test_a_service_of_swarm_is_confined(name: str) -> None:
    service = SWARM["services"][name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["deploy"]["endpoint_mode"] == "dnsrr"
    assert all(port["mode"] == "host" for port in service.get("ports", ()))
    assert service["deploy"]["resources"]["limits"]["memory"].endswith("M")
    assert service["environment"]["WAYMARK_ACCESS"] == "required"
    assert {secret["source"] for secret in service["secrets"]} <= SWARM["secrets"].keys()


def test_each_host_of_swarm_has_a_service_for_its_spool() -> None:
    ingest = SWARM["services"]["ingest"]
    assert ingest["deploy"]["mode"] == "global"
    assert "spool:/spool" in ingest["volumes"]


def test_each_ingest_service_has_a_name_of_its_own() -> None:
    """Else the page shows one of them: each has a spool of the same name."""
    named = {variable["name"]: variable for variable in container("ingest")["env"]}
    assert named["INGEST_NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert "{{.Node.Hostname}}" in SWARM["services"]["ingest"]["environment"]["INGEST_NAME"]
