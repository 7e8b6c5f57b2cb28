"""What the services' user may do; nothing while a backup is being restored, or with newer data."""

from typing import Any

from pymongo.errors import OperationFailure

from common import schema
from common.schema import DATABASE
from mongo import data
from mongo.backup.marks import restoring
from mongo.clients import Client

NAME = "waymark"
DUPLICATE_ROLE = 51002


def ensure(client: Client) -> None:
    """Create the role of the services' user, or give it the privileges that it is to have now."""
    # Half of a restored database is nobody's to see, nor newer data an older program's to change:
    # for the services the database is away.
    closed = restoring(client[DATABASE]) or data.is_newer(client[DATABASE])
    privileges = [] if closed else _privileges()
    try:
        client[DATABASE].command("createRole", NAME, privileges=privileges, roles=[])
    except OperationFailure as error:
        if error.code != DUPLICATE_ROLE:
            raise
        client[DATABASE].command("updateRole", NAME, privileges=privileges)


def _privileges() -> list[dict[str, Any]]:
    return [
        {"resource": {"db": DATABASE, "collection": ""}, "actions": list(schema.OF_DATABASE)},
        *(
            {
                "resource": {"db": DATABASE, "collection": collection.name},
                "actions": list(collection.actions),
            }
            for collection in schema.COLLECTIONS
        ),
    ]
