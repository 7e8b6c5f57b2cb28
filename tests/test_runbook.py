"""Every command of the runbook and its neighbours exists, and takes the words that it is given.

Each program's own parser reads them, and nothing is run; tests/stack/test_runbook.py runs some.
"""

import argparse
import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyrage.x25519 import Identity

from mongo import topology
from mongo.servers import servers
from scripts.processes import ROOT
from tests.test_docs import FENCED

DOCUMENTS = [
    *(f"docs/{name}.md" for name in ("access", "backup", "docker", "growing", "personal-data")),
    *("docs/runbook.md", "docs/upgrading.md", "deploy/ec2/README.md"),
]
# What reads the words of a script; of what Docker Compose runs, the compose file says it.
MODULES = {
    "account": "ingest.commands.accounts",
    "backup": "scripts.native.backup",
    "budget": "scripts.box.main",
    "capacity-plan": "loadtests.sizing",
    "down": "scripts.native.down",
    "load": "loadtests.main",
    "person": "ingest.commands.person",
    "restore": "scripts.native.restore",
    "status": "scripts.native.status",
    "storage": "ingest.commands.storage",
    "token": "ingest.commands.tokens",
    "up": "scripts.native.up",
}
BY_SHELL = {"certificate", "configure", "install", "logs", "pin", "update"}
OF_DOCKER = {
    *("builder", "compose", "config", "image", "info", "node", "secret", "stack", "swarm", "volume")
}
OF_COMPOSE = {"down", "exec", "logs", "ps", "restart", "run", "up"}
WITH_VALUE = {"-f", "-v", "--entrypoint", "--profile", "--scale", "--tail", "--timeout"}
SHELLS = {"cd", "do", "done", "echo", "export", "for", "printf", "read", "while", "(", ")"}
OTHERS = {
    *("age-keygen", "aws", "cat", "cp", "crontab", "curl", "date", "df", "dmesg", "git", "grep"),
    *("install", "kubectl", "logger", "mkdir", "mongod", "mongos", "mongosh", "nano", "openssl"),
    *("python3", "rm", "ssh", "tail", "timedatectl", "uptime"),
}


class TakenError(Exception):
    """A parser took its words, and nothing more is to be done."""


def services() -> dict[str, dict[str, Any]]:
    """Return the services of all compose files of the root."""
    return {
        name: service
        for file in sorted(ROOT.glob("docker-compose*.yml"), reverse=True)
        for name, service in yaml.safe_load(file.read_text())["services"].items()
    }


SERVICES = services()


def commands(block: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell, without variables and where output goes."""
    block = re.sub(r"-c\s+'[^']*'", "-c CODE", block).replace("\\\n", " ")
    for line in block.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if re.fullmatch(r"[|&;()]+", word):
                if words := command(words):
                    yield words
                words = []
            else:
                words.append(word)


def command(words: list[str]) -> list[str]:
    """Return what is run, and with which words."""
    plain: list[str] = []
    for word, before in zip(words, ["", *words], strict=False):
        if not re.fullmatch(r"[<>]+", word) and not re.fullmatch(r"[<>]+", before):
            plain.append(word)
    if plain[-1:] == ["2"]:  # of `2>&1`
        plain.pop()
    while plain and (plain[0] in {"sudo", "do", "while"} or re.match("[A-Z_]+=", plain[0])):
        plain.pop(0)
    return plain


def lines() -> list[tuple[str, str]]:
    """Return each command with its document."""
    return [
        (document, shlex.join(words))
        for document in DOCUMENTS
        for block in FENCED.findall((ROOT / document).read_text())
        if block.startswith("```sh\n")
        for words in commands(block[len("```sh\n") : -len("```")])
    ]


@pytest.fixture(autouse=True)
def key_of_backups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay the private key where the documents have it: a parser reads it at once."""
    key = str(Identity.generate())
    (tmp_path / "waymark.key").write_text(key)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(key))


@pytest.mark.parametrize(
    "line",
    [
        "./scripts/up --detatch",
        "./scripts/backup",
        "./scripts/update --no-such-option",
        "./scripts/nothing",
        "docker compose run --rm token make",
        "docker compose run --rm nothing",
        "docker compose logs --tail 3 ingest-9",
        "docker compose --profile nothing up -d",
        "docker compose -f docker-compose.8gb.yml up",
        "rmdir data",
    ],
)
def test_what_does_not_exist_is_found(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((AssertionError, SystemExit)):
        check(line, monkeypatch)


@pytest.mark.parametrize(("document", "line"), sorted(set(lines())))
def test_the_command_exists(document: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del document  # it names the case
    check(line, monkeypatch)


def test_a_server_is_started_by_hand_as_we_start_it(tmp_path: Path) -> None:
    named = topology.load(topology.FOLDER / "topology.ha.toml")
    ours = servers(named, 27017, Path("bin"), tmp_path, Path("SECRETS/keyfile"))
    by_hand = [line for document, line in lines() if document == "docs/growing.md"]
    assert kinds(server.command for server in ours) == kinds(
        words for words in map(shlex.split, by_hand) if words[0] in {"mongod", "mongos"}
    )


def kinds(typed: Iterable[list[str]]) -> set[tuple[str, frozenset[str]]]:
    """Return each program with its options; where it listens is of the host."""
    return {
        (Path(program).name, frozenset(word for word in words if re.match("--(?!bind_ip)", word)))
        for program, *words in typed
    }


def check(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask whatever reads the words of a command."""
    program, *words = shlex.split(line)
    if program.startswith("./scripts/"):
        name = program.removeprefix("./scripts/")
        if name in MODULES:
            taken(MODULES[name], words, monkeypatch)
        else:
            assert name in BY_SHELL
            text = (ROOT / program).read_text()
            assert [word for word in words if word[0] == "-" and word not in text] == []
    elif program == ".venv/bin/python":
        assert words[0] == "-m"
        taken(words[1], words[2:], monkeypatch)
    elif program == "docker":
        assert words[0] in OF_DOCKER
        if words[0] == "compose":
            taken_by_compose(words[1:], monkeypatch)
    else:
        assert program in SHELLS | OTHERS


def taken(module: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the parser of a module read words; it ends with what is wrong with them."""
    loaded = importlib.import_module(module)
    if hasattr(loaded, "__path__"):
        loaded = importlib.import_module(f"{module}.__main__")
    if not hasattr(loaded, "argparse"):
        is_for_a_folder = f"python -m {module} FOLDER" in (loaded.__doc__ or "")
        assert len(words) == int(is_for_a_folder), f"{module} takes other words"
        return
    for name in ("parse_args", "parse_intermixed_args"):
        monkeypatch.setattr(argparse.ArgumentParser, name, and_no_more(name))
    monkeypatch.setattr(sys, "argv", [module, *words])
    with pytest.raises(TakenError):
        loaded.main()


def and_no_more(name: str) -> Any:
    """Return a method of parsers that ends when it has read its words."""
    parse = getattr(argparse.ArgumentParser, name)

    def parse_and_end(*arguments: object) -> None:
        parse(*arguments)
        raise TakenError

    return parse_and_end


def taken_by_compose(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold a command of Docker Compose to the compose files, and what it runs to its parser."""
    options: dict[str, str] = {}
    plain: list[str] = []
    rest = iter(words)
    for word in rest:
        # What `run` and `exec` run comes after the service.
        if plain[:1] in (["run"], ["exec"]) and len(plain) > 1:
            plain.append(word)
        elif word in WITH_VALUE:
            options[word] = next(rest)
        elif word[0] != "-":
            plain.append(word)
    if "-f" in options:
        assert (ROOT / options["-f"]).exists()
        named = yaml.safe_load((ROOT / options["-f"]).read_text())["services"]
    verb, *names = plain
    assert verb in OF_COMPOSE
    if verb in ("run", "exec"):
        name, *given = names
        assert name in SERVICES
        if verb == "run" and "--entrypoint" not in options:
            start = SERVICES[name].get("entrypoint", ["python3", "-m"])
            whole = [*start, *given]
            assert whole[:2] == ["python3", "-m"]
            taken(whole[2], whole[3:], monkeypatch)
    else:
        known = SERVICES if "-f" not in options else SERVICES | named
        assert [name for name in names if name not in known and name != "SERVICE"] == []
    if "--profile" in options:
        assert any(options["--profile"] in one.get("profiles", ()) for one in SERVICES.values())
