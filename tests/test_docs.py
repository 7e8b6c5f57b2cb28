"""What the README says exists, and what exists is in the README."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from flask import Flask

import gateway.render
import ingest
import ingest.config
import monitoring
import monitoring.config

CODE = ["services", "scripts", "mongo", "gateway", "loadtests"]
READ = re.compile(r'environ(?:ment)?(?:\.get\(|\[)\s*"([A-Z][A-Z_]+)"')
COMPOSE = re.compile(r"\$\{([A-Z_]+):-([^}]*)\}")
OURS = {"PATH"}
GATEWAYS_OWN = {"/nginx_status"}


def table(root: Path, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table under a heading, by the code in their first cell."""
    section = (root / "README.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip().strip("`"): [cell.strip() for cell in row] for row in rows}


def declared() -> dict[str, object]:
    """Return every variable of the configuration classes with its default."""
    found: dict[str, object] = {}
    for config in (ingest.config.Config(), monitoring.config.Config()):
        found |= {f.name.upper(): getattr(config, f.name) for f in fields(config)}
    front = gateway.render.Config()._asdict()
    return found | {f"GATEWAY_{name.upper()}": value for name, value in front.items()}


def read_elsewhere(root: Path) -> set[str]:
    """Return the variables that code reads without a configuration class."""
    files = [file for folder in CODE for file in (root / folder).rglob("*.py")]
    return {name for file in files for name in READ.findall(file.read_text())} - OURS


def read_by_compose(root: Path) -> dict[str, str]:
    """Return the variables of the compose file with their defaults."""
    return dict(COMPOSE.findall((root / "docker-compose.yml").read_text()))


def test_every_variable_is_in_the_readme_and_the_reverse(root: Path) -> None:
    known = set(declared()) | read_elsewhere(root) | set(read_by_compose(root))
    assert set(table(root, "Configuration")) == known


def test_the_readmes_defaults_of_the_compose_file_are_true(root: Path) -> None:
    for name, default in read_by_compose(root).items():
        assert table(root, "Configuration")[name][1].strip("`") == default


@pytest.mark.parametrize("name", sorted(declared()))
def test_the_readmes_defaults_are_true(root: Path, name: str) -> None:
    assert table(root, "Configuration")[name][1].strip("`") == str(declared()[name])


def endpoints(app: Flask) -> set[str]:
    return {rule.rule for rule in app.url_map.iter_rules() if rule.endpoint != "static"}


def test_every_endpoint_is_in_the_readme_and_the_reverse(root: Path, tmp_path: Path) -> None:
    spool = str(tmp_path / "spool.db")
    app = ingest.create_app(ingest.config.Config(mongodb_timeout_ms=50, spool_file=spool))
    app.extensions["context"].close()
    real = endpoints(app) | endpoints(monitoring.create_app())
    rows = table(root, "Endpoints")
    rows["/api/<path:_>"] = rows.pop("/api/")  # only the gateway's prefix so far
    assert set(rows) - GATEWAYS_OWN == real - {"/monitoring/latest"}
    assert "/monitoring/latest" in " ".join(rows["/monitoring"])


def test_every_script_is_in_the_readme(root: Path) -> None:
    scripts = {
        f"./scripts/{file.name}"
        for file in (root / "scripts").iterdir()
        if file.is_file() and not file.suffix
    } - {"./scripts/lib"}
    assert set(table(root, "What you see")) == scripts


def test_every_link_leads_somewhere(root: Path) -> None:
    for document in ("README.md", "ARCHITECTURE.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (root / document).read_text()):
            assert (root / target).exists(), target
