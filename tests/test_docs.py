"""What the documents say exists, and what exists is in the documents."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from flask import Flask

import gateway.acme
import gateway.render
import ingest
import ingest.config
import monitoring
import monitoring.config
from scripts.native.version import version

ROOT = Path(__file__).resolve().parents[1]
CODE = ["common", "services", "scripts", "mongo", "gateway", "loadtests"]
INSTALLED = {"node_modules", "__pycache__"}
FILES = [
    *(file for file in ROOT.iterdir() if file.is_file()),
    *(
        file
        for folder in [*CODE, "deploy", "docs", "examples", "findings", "tests"]
        for file in (ROOT / folder).rglob("*")
        if not INSTALLED & set(file.parts)
    ),
]
DOCUMENTS = sorted(str(file.relative_to(ROOT)) for file in FILES if file.suffix == ".md")

READ = re.compile(r'environ(?:ment)?(?:\.get\(|\[)\s*"([A-Z][A-Z0-9_]+)"')
READ_BY_SHELL = re.compile(r"\$\{(WAYMARK_[A-Z_]+|COMPOSE_ENV_FILES):-")
COMPOSE = re.compile(r"\$\{([A-Z_]+):-([^}]*)\}")
OURS = {"PATH", "DOCKER_HOST", "WAYMARK_LACKS"}
GATEWAYS_OWN = {
    "/nginx_status",
    "/_circuit/ingest",
    "/_circuit/reads",
    "/_service/N",
    "/_service/N/metrics",
    "/_metrics",
}

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A file or folder of the repository in code quotes; addresses begin with a slash.
NAMED = re.compile(r"`(?:\./)?(\w[\w./-]*(?:\.(?:py|js|toml|ya?ml|csv|conf|template|sh|css)|/))`")
MADE_LATER = {"data/", "load-report/", "docker-compose.override.yml"}


def section(document: str, heading: str) -> str:
    """Return what stands under a heading of the second order."""
    text = (ROOT / document).read_text()
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def table(document: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table under a heading, by the code in their first cell."""
    lines = section(document, heading).splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| `")]
    return {row[0].strip().strip("`"): [cell.strip() for cell in row] for row in rows}


def prose(document: str) -> str:
    """Return a document without its blocks of code."""
    return FENCED.sub("", (ROOT / document).read_text())


def anchors(document: str) -> set[str]:
    """Return what a link may name in a document, as GitHub makes it from the headings."""
    plain = (
        re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose(document))
    )
    return {heading.replace(" ", "-") for heading in plain}


def settings() -> dict[str, list[str]]:
    return table("docs/configuration.md", "Environment variables")


def declared() -> dict[str, object]:
    """Return every variable of the configuration classes with its default."""
    values: dict[str, object] = {}
    for config in (ingest.config.Config(), monitoring.config.Config()):
        values |= {f.name.upper(): getattr(config, f.name) for f in fields(config)}
    front = gateway.render.Config()._asdict()
    values |= {gateway.render.variable(name): value for name, value in front.items()}
    client = gateway.acme.Settings()._asdict()
    return values | {f"ACME_{name.upper()}": value for name, value in client.items()}


def read_elsewhere() -> set[str]:
    """Return the variables that code reads without a configuration class."""
    files = [file for folder in CODE for file in (ROOT / folder).rglob("*.py")]
    names = {name for file in files for name in READ.findall(file.read_text())}
    shell = (file.read_text() for file in (ROOT / "scripts").iterdir() if file.is_file())
    return (names | {name for text in shell for name in READ_BY_SHELL.findall(text)}) - OURS


def read_by_compose() -> dict[str, str]:
    """Return the variables of the compose file with their defaults."""
    return dict(COMPOSE.findall((ROOT / "docker-compose.yml").read_text()))


def test_every_variable_is_documented_and_the_reverse() -> None:
    assert set(settings()) == set(declared()) | read_elsewhere() | set(read_by_compose())


def test_the_documented_defaults_of_the_compose_file_are_true() -> None:
    for name, default in read_by_compose().items():
        if "$" in default:
            continue  # made of others
        assert settings()[name][1].strip("`") == default


@pytest.mark.parametrize("name", sorted(declared()))
def test_the_documented_defaults_are_true(name: str) -> None:
    assert settings()[name][1].strip("`") == str(declared()[name])


def endpoints(app: Flask) -> set[str]:
    return {
        rule.rule.replace("<beacon:", "<").replace("<person:", "<")
        for rule in app.url_map.iter_rules()
        if rule.endpoint != "static"
    }


def test_every_endpoint_is_documented_and_the_reverse(tmp_path: Path) -> None:
    spool = str(tmp_path / "spool.db")
    app = ingest.create_app(ingest.config.Config(mongodb_timeout_ms=50, spool_file=spool))
    app.extensions["context"].close()
    real = endpoints(app) | endpoints(monitoring.create_app())
    rows = table("docs/api.md", "Endpoints")
    rows["/api/<path:_>"] = rows.pop("/api/")  # only the gateway's prefix so far
    assert set(rows) - GATEWAYS_OWN == real - {"/monitoring/latest"}
    assert "/monitoring/latest" in " ".join(rows["/monitoring"])


def test_the_readme_has_the_legacy_endpoints_as_the_table_of_all() -> None:
    short = table("README.md", "The phone's contract")
    assert set(short) == {"/newbeacondetect", "/extractbeacon", "/retrieveformonitoring"}
    long = table("docs/api.md", "Endpoints")
    for endpoint, row in short.items():
        names = set(re.findall(r"`([a-z_]+)`", row[1]))
        assert names == set(re.findall(r"`([a-z_]+)`", long[endpoint][1]))


def test_every_script_is_in_the_readme() -> None:
    scripts = {
        f"./scripts/{file.name}"
        for file in (ROOT / "scripts").iterdir()
        if file.is_file() and not file.suffix
    } - {"./scripts/lib"}
    assert set(table("README.md", "Commands")) == scripts


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_shell_takes_an_address_for_a_pattern(document: str) -> None:
    for block in FENCED.findall((ROOT / document).read_text()):
        assert re.findall(r"(?<!['\"\S])https?://[^\s'\"]*[?&]", block) == []


def links(document: str) -> Iterator[tuple[str, str]]:
    """Yield the file and the anchor (or nothing) of each link that stays in the repository."""
    for target in LINK.findall(prose(document)):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            path = (ROOT / document).parent / file if file else ROOT / document
            yield str(path.resolve().relative_to(ROOT)), anchor


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    for target, anchor in links(document):
        assert (ROOT / target).exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


@pytest.mark.parametrize(
    "document",
    DOCUMENTS,
)
def test_every_file_that_is_named_exists(document: str) -> None:
    paths = [f"/{file.relative_to(ROOT)}" for file in FILES]
    for name in set(NAMED.findall(prose(document))) - MADE_LATER:
        if name.endswith("/"):
            assert any(f"/{name}" in path for path in paths), name
        else:
            assert any(path.endswith(f"/{name}") for path in paths), name


def test_the_changelog_has_a_day_for_the_version() -> None:
    heading = rf"^## \[{re.escape(version())}\] - 20\d\d-\d\d-\d\d$"
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_each_image_tells_the_version() -> None:
    targets = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    images = {name: text for text in targets for name in re.findall(r"^\S+ AS (\S+)\n", text)}
    for name in ("gateway", "acme", "ingest", "monitoring", "mongo-init"):
        assert "LABEL org.opencontainers.image.version=$VERSION" in images[name], name
    for name in ("ingest", "monitoring", "mongo-init"):
        assert "ENV WAYMARK_VERSION=$VERSION" in images[name], name
