"""Make, list and revoke tokens: `python -m ingest.commands.tokens create|list|revoke`.

Each secret is printed once, alone on standard output, so that a script can take it.
"""

import argparse
import sys
import time
from datetime import UTC, datetime

from common import names
from common.audit_events import Event
from ingest.access import tokens
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.rules.roles import LEVEL, TEAM, Role
from ingest.storage.access.audit import Audit, Entry
from ingest.storage.access.tokens import MAX_TOKENS, Token, Tokens, TooManyTokens
from ingest.storage.database.client import Client

MAX_LABEL = 64
ROW = "{:<10}{:<8}{:<26}{:<8}{:<12}{:<18}{:<18}{}"


def main() -> None:
    """Run the command; an error ends it with one line and status 1."""
    options = _parser().parse_args()
    client = Client(Config.from_environment())
    try:
        options.run(Tokens(client.database), Audit(client.database), options)
    except StoreUnavailable as error:
        sys.exit(f"token: the database does not answer: {error}")
    except TooManyTokens:
        sys.exit(f"token: there are {MAX_TOKENS} valid ones: revoke some first")
    finally:
        client.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./scripts/token", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    create = commands.add_parser("create", help="make a token, and print its secret once")
    create.set_defaults(run=_create)
    create.add_argument("label", type=_label, help="whose it is, as the list shows it")
    create.add_argument("--role", choices=tokens.ROLES, required=True, help="what it may do")
    create.add_argument("--level", type=_label, help="the only one to be seen, with the role read")
    create.add_argument("--team", type=_team, help="the only one whose people are to be seen")
    valid = create.add_mutually_exclusive_group()
    valid.add_argument("--days", type=_days, help="how long it is valid (until it is revoked)")
    valid.add_argument("--hours", type=_hours, help="the same in hours")
    listed = commands.add_parser("list", help="show all tokens, without their secrets")
    listed.set_defaults(run=_list)
    revoke = commands.add_parser("revoke", help="end a token; within 30 s all services refuse it")
    revoke.set_defaults(run=_revoke)
    revoke.add_argument("id", help="as the list shows it")
    return parser


def _label(text: str) -> str:
    if not 0 < len(text) <= MAX_LABEL or not text.isprintable():
        raise argparse.ArgumentTypeError(f"1 to {MAX_LABEL} printable characters")
    return text


def _team(text: str) -> str:
    return _label(names.folded(text))


def _days(text: str) -> int:
    return _whole(text, tokens.MAX_DAYS)


def _hours(text: str) -> int:
    return _whole(text, tokens.MAX_HOURS)


def _whole(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {most}")
    return int(text)


def _create(stored: Tokens, audit: Audit, options: argparse.Namespace) -> None:
    role, now = Role(options.role), int(time.time())
    limits = {name: vars(options)[name] for name in (LEVEL, TEAM) if vars(options)[name]}
    if limits and role is not Role.READ:
        sys.exit(f"token: a {' and a '.join(limits)} only with the role read")
    hours = options.days * 24 if options.days else options.hours
    secret, token = tokens.issue(options.label, role, hours, now, **limits)
    stored.add(token)
    made = {"label": token.label, "role": options.role} | limits
    _note(audit, "token made", token.token_id, made)
    print(f"token {token.token_id}: valid in a few seconds, shown only now:", file=sys.stderr)
    print(secret)


def _list(stored: Tokens, _: Audit, __: argparse.Namespace) -> None:
    print(ROW.format("id", "role", "label", "level", "team", "made", "last used", "valid"))
    for token in stored.everyone():
        made, used = _when(token.created_at), _when(token.last_used_at)
        what = token.role.value, token.label, token.level or "all", token.team or "all"
        print(ROW.format(token.token_id, *what, made, used, _valid(token)))


def _revoke(stored: Tokens, audit: Audit, options: argparse.Namespace) -> None:
    if not stored.revoke(options.id, int(time.time())):
        sys.exit(f"token: there is none with the id {options.id}: ./scripts/token list")
    _note(audit, "token revoked", options.id, {})
    print(f"token {options.id}: revoked; within 30 s all services refuse it")


def _note(audit: Audit, what: Event, of: str, details: dict[str, str | bool]) -> None:
    audit.add(Entry(int(time.time()), "command line", "command", what, of, details, ""))


def _when(seconds: int | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}" if seconds else "never"


def _valid(token: Token) -> str:
    if token.revoked_at:
        return f"revoked {_when(token.revoked_at)}"
    if token.expires_at and token.expires_at <= time.time():
        return f"expired {_when(token.expires_at)}"
    return f"until {_when(token.expires_at)}" if token.expires_at else "until it is revoked"


if __name__ == "__main__":
    main()
