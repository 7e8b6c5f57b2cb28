"""Bring one replica set to its configured members."""

from collections.abc import Callable
from functools import partial

from pymongo.errors import OperationFailure

from mongo import clients
from mongo.progress import Progress
from mongo.secrets import Secrets
from mongo.topology import ReplicaSet

ALREADY_INITIATED = frozenset({23})
NOT_YET_INITIATED = 94
# A member that another cannot reach yet, or a reconfiguration still under way: ask again.
RETRIED = frozenset({74, 103, 109, 189, 308})
# Measured: a killed primary is replaced in 4 s instead of 11 s.
ELECTION_TIMEOUT_MS = 3000


def ensure(
    wanted: ReplicaSet,
    secrets: Secrets,
    progress: Progress,
    *,
    alone: bool,
    before_initiation: Callable[[], None] = lambda: None,
) -> None:
    """Initiate the set or add its missing members. `alone`: no shard, so it may change its port.

    What `before_initiation` raises ends it: a set that has no data where there were some.
    """
    hellos = {
        member: progress.wait_for(f"answer from {member}", partial(clients.hello, member))
        for member in wanted.members
    }
    if not any("setName" in said for said in hellos.values()):
        moved_from = _moved_from(wanted, secrets) if alone else None
        if moved_from:
            progress.say(f"replica set {wanted.name}: moved here from {moved_from}")
        else:
            before_initiation()
            what = f"acceptance of replica set {wanted.name}"
            progress.wait_for(what, partial(_initiate, wanted, secrets))
            progress.say(f"replica set {wanted.name}: initiated, {len(wanted.members)} members")
    primary = progress.wait_for(f"primary of {wanted.name}", partial(primary_of, wanted))
    _add_members(wanted, primary, secrets, progress)


def primary_of(wanted: ReplicaSet) -> str | None:
    """Return the address of the primary, when there is one."""
    for member in wanted.members:
        said = clients.hello(member)
        if said and said.get("isWritablePrimary"):
            return member
    return None


def _initiate(wanted: ReplicaSet, secrets: Secrets) -> bool | None:
    members = [{"_id": i, "host": host} for i, host in enumerate(wanted.members)]
    settings = {"electionTimeoutMillis": ELECTION_TIMEOUT_MS}
    configuration = {"_id": wanted.name, "members": members, "settings": settings}
    with clients.as_system(wanted.members[0], secrets) as client:
        return clients.attempt(
            client, {"replSetInitiate": configuration}, again=RETRIED, done=ALREADY_INITIATED
        )


def _moved_from(wanted: ReplicaSet, secrets: Secrets) -> str | None:
    """Let a set of one member follow its port: return the address that its data knew, if any.

    Started on another port, a member does not find itself in its configuration and takes no part.
    """
    with clients.as_system(wanted.members[0], secrets) as client:
        try:
            configuration = client.admin.command("replSetGetConfig")["config"]
        except OperationFailure as error:
            if error.code == NOT_YET_INITIATED:
                return None
            raise
        (member,) = configuration["members"]
        old = str(member["host"])
        member["host"] = wanted.members[0]
        configuration["version"] += 1
        client.admin.command("replSetReconfig", configuration, force=True)
        return old


def _add_members(wanted: ReplicaSet, primary: str, secrets: Secrets, progress: Progress) -> None:
    """Add one member at a time: more voters at once would not be accepted."""

    def add(host: str) -> bool | None:
        with clients.as_system(primary, secrets) as client:
            configuration = client.admin.command("replSetGetConfig")["config"]
            if host in [member["host"] for member in configuration["members"]]:
                return False
            number = max(member["_id"] for member in configuration["members"]) + 1
            configuration["members"].append({"_id": number, "host": host})
            configuration["version"] += 1
            return clients.attempt(client, {"replSetReconfig": configuration}, again=RETRIED)

    for host in wanted.members:
        if progress.wait_for(f"acceptance of {host} in {wanted.name}", partial(add, host)):
            progress.say(f"replica set {wanted.name}: added {host}")
