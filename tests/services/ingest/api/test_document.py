"""The OpenAPI document and the application say the same."""

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from flask import Flask
from openapi_spec_validator import OpenAPIV31SpecValidator

from common.routes import BATCH_BODY_BYTES, PREFIX, ROUTES
from ingest.api.detections.detection_input import MAX_ITEMS
from ingest.api.http import problem_details
from ingest.api.openapi import declarations
from ingest.api.openapi import document as document_module
from tests.services.ingest.api.conftest import Api

AUTOMATIC = {"HEAD", "OPTIONS"}


@pytest.fixture
def document(api: Api) -> dict[str, Any]:
    openapi: dict[str, Any] = api.get("/openapi.json")
    return openapi


@pytest.mark.long
def test_the_document_is_valid(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(document).validate()


def test_every_schema_has_a_name_for_programs(document: dict[str, Any]) -> None:
    assert [name for name in document["components"]["schemas"] if not name.isalnum()] == []


def test_every_route_is_in_the_document_and_the_reverse(
    app: Flask, document: dict[str, Any]
) -> None:
    routes = {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - AUTOMATIC
    }
    declared = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert declared == routes


def test_every_parameter_of_a_path_is_declared(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            named = {
                parameter["name"]
                for parameter in operation["parameters"]
                if parameter["in"] == "path"
            }
            assert named == set(re.findall(r"\{(\w+)\}", path))


def test_every_operation_has_its_words(document: dict[str, Any]) -> None:
    names = [declared.name for declared in declarations.OPERATIONS]
    assert len(names) == len(set(names))
    for operation in declarations.OPERATIONS:
        assert operation.summary
        assert set(operation.problems) <= set(problem_details.CODES)
        assert operation.curl or operation.tag in ("legacy", "health", "description")


def test_the_page_is_complete_and_needs_nothing_else(api: Api) -> None:
    answer = api.client.get("/docs", headers={"Host": "example.org:8080"})
    assert answer.mimetype == "text/html"
    for operation in declarations.OPERATIONS:
        assert f'id="{operation.name}"' in answer.text
    for code in problem_details.CODES:
        assert f'<tr id="{code}">' in answer.text
    assert "curl &#39;http://example.org:8080/api/v1/staff&#39;" in answer.text
    links = re.findall(r'(?:href|src)="([^"]*)"', answer.text)
    assert {link for link in links if not link.startswith("#")} == {"/api/v1/openapi.json"}
    assert "<script" not in answer.text
    assert not re.findall(r"\sstyle=|\son\w+=", answer.text)
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    known = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert answer.headers["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{known}'; form-action 'none'; base-uri 'none';"
        " frame-ancestors 'none'"
    )
    identifiers = re.findall(r'id="([^"]*)"', answer.text)
    assert len(identifiers) == len(set(identifiers))
    assert {link[1:] for link in links if link.startswith("#")} <= set(identifiers)


def test_the_page_tells_what_a_phone_has_to_know(api: Api) -> None:
    pages = [api.client.get("/docs").text for _ in range(2)]
    phone = pages[0].partition('id="phone"')[2].partition('id="operations"')[0]
    for word in (
        "backlog",
        "Offline",
        "CORS",
        "WAYMARK_ALLOWED_ORIGINS",
        "iBeacon",
        "never a counter",
    ):
        assert word in phone
    assert f"{MAX_ITEMS} detections and {BATCH_BODY_BYTES // 1024} KiB" in phone
    assert not re.search(r"`|\*\*", phone)
    named = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    sent = [body for page in pages for body in named.findall(page)]
    assert len(set(sent)) == len(sent) == 2 * 3  # an event id in each example, fresh on each page


def test_a_query_with_another_name_is_refused_everywhere_and_guessed(api: Api) -> None:
    for operation in declarations.OPERATIONS:
        path = re.sub(r"<\w+>", "C2A628384B08", operation.path)
        if not path.startswith(PREFIX) or path.endswith("/callback"):
            continue
        declared = [
            name["name"] for name in document_module.parameters(operation) if name["in"] == "query"
        ]
        slips = {f"{name}s": f"did you mean {name}?" for name in declared[:1]} | {
            "zzzz": "is not known"
        }
        answer = api.client.open(
            path, method=operation.method, query_string=dict.fromkeys(slips, "1")
        )
        assert (answer.status_code, answer.mimetype) == (400, "application/problem+json"), operation
        assert answer.json is not None
        reasons = {fault["field"]: fault["reason"] for fault in answer.json["errors"]}
        assert reasons.keys() == slips.keys()
        assert all(said in reasons[name] for name, said in slips.items())
    assert api.client.get("/api/v1/session/oidc/callback?session_state=1").status_code == 404


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/api/v1/detection", "did you mean /api/v1/detections?"),
        ("/api/v1/staff/7/detection", "did you mean /api/v1/staff/<staff_id>/detections?"),
        ("/api/v1/beacon/C2A628384B08", "did you mean /api/v1/beacons/<mac>?"),
        ("/api/v1/", "/docs lists"),
        ("/api/v1/" + "staff/" * 1000, "/docs lists"),
    ],
)
def test_an_address_that_is_none_names_the_nearest(app: Flask, path: str, near: str) -> None:
    answer = app.test_client().post(path)
    assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")
    assert answer.json is not None
    assert near in answer.json["detail"]


def test_a_method_that_is_none_names_the_others(app: Flask) -> None:
    answer = app.test_client().delete("/api/v1/detections")
    assert (answer.status_code, answer.mimetype) == (405, "application/problem+json")
    assert answer.json is not None
    assert answer.json["detail"] == f"DELETE is not for this address; {answer.headers['Allow']} are"


@pytest.mark.parametrize("host", ["<script>alert(1)</script>", "a b", "é", ""])
def test_the_page_trusts_no_host(api: Api, host: str) -> None:
    answer = api.client.get("/docs", headers={"Host": host})
    assert answer.status_code in (200, 400)
    assert "<script" not in answer.text


def test_the_documents_examples_are_good(api: Api, document: dict[str, Any]) -> None:
    body = document["paths"]["/api/v1/detections"]["post"]["requestBody"]["content"]
    example = body["application/json"]["example"]
    answer = api.client.post("/api/v1/detections", json=example)
    assert answer.json is not None
    assert answer.json["counts"]["stored"] == 1
    for operation in declarations.OPERATIONS:
        for sent in re.findall(r"-d '([^']*)'", operation.curl):
            json.loads(sent)


def test_each_operation_is_in_the_table_of_addresses_and_the_reverse() -> None:
    declared = {
        (operation.method, operation.path, operation.role.value)
        for operation in declarations.OPERATIONS
    }
    assert declared == {
        (method, route.path, role) for route in ROUTES for method, role in route.roles.items()
    }
