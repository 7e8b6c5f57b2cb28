"""Make, list and remove the people who may log in.

`python -m ingest.commands.accounts create|list|remove`.

The settings are the service's own (docs/configuration.md).
"""

import argparse
import secrets
import sys
import time

from common.audit_events import Event
from ingest.access.passwords import Passwords
from ingest.config import Config
from ingest.errors import ParameterError, StoreUnavailable
from ingest.rules import accounts as rules
from ingest.rules.roles import Role
from ingest.storage.access.accounts import Accounts, LastAdmin, OtherLogIn, TooManyAccounts
from ingest.storage.access.audit import Audit, Entry
from ingest.storage.database.client import Client


def main() -> None:
    """Run the command; what goes wrong ends it with one line and status 1."""
    options = _parser().parse_args()
    client = Client(Config.from_environment())
    try:
        options.run(options, Accounts(client.database), Audit(client.database))
    except LastAdmin:
        sys.exit("accounts: this is the last admin: make somebody else admin first")
    except OtherLogIn:
        sys.exit("accounts: this person logs in with OpenID Connect: the settings tell their role")
    except TooManyAccounts:
        sys.exit("accounts: there are too many: remove some first")
    except (ParameterError, StoreUnavailable) as error:
        sys.exit(f"accounts: {error}")
    finally:
        client.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./scripts/account", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    create = commands.add_parser("create", help="make an account, or give one a new password")
    create.add_argument("name")
    roles = (Role.READ.value, Role.ADMIN.value)
    create.add_argument("--role", choices=roles, default=Role.READ.value)
    create.add_argument(
        "--password-stdin", action="store_true", help="read the password, do not make one"
    )
    create.set_defaults(run=_create)
    commands.add_parser("list", help="names, roles, days, and who vouches for them").set_defaults(
        run=_list
    )
    remove = commands.add_parser("remove", help="remove an account")
    remove.add_argument("name")
    remove.set_defaults(run=_remove)
    return parser


def _create(options: argparse.Namespace, accounts: Accounts, audit: Audit) -> None:
    name = rules.new_name(vars(options), "name")
    line = sys.stdin.readline().rstrip("\r\n") if options.password_stdin else ""
    password = line if options.password_stdin else secrets.token_urlsafe(15)
    stored = Passwords().hash(rules.new_password({"password": password}, "password"))
    made = accounts.put(name, Role(options.role), stored, time.time())
    _note(audit, "account put", name, {"role": made.role.value, "new_password": True})
    if options.password_stdin:
        print(f"{name} may log in")
    else:
        print(f"{name} may log in with this password, which is shown only now: {password}")


def _list(options: argparse.Namespace, accounts: Accounts, audit: Audit) -> None:  # noqa: ARG001
    for account in accounts.everyone():
        made = time.strftime("%Y-%m-%d", time.gmtime(account.created_at))
        print(f"{account.name}\t{account.role.value}\t{made}\t{account.provider}".rstrip())


def _remove(options: argparse.Namespace, accounts: Accounts, audit: Audit) -> None:
    name = rules.new_name(vars(options), "name")
    if not accounts.remove(name):
        sys.exit(f"accounts: there is no {name}")
    _note(audit, "account removed", name, {})


def _note(audit: Audit, what: Event, of: str, details: dict[str, str | bool]) -> None:
    audit.add(Entry(int(time.time()), "command line", "command", what, of, details, ""))


if __name__ == "__main__":
    main()
