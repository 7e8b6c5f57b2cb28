"""From people to parts, machines, disks and money: pure functions over the table of costs.

CPU is in cores (vCPUs) throughout. Two questions have two answers. What the parts *take* at a rate:
detections that come alone cost most each. What they *need* so as not to be too slow: under pressure
detections share their groups, and cost least each. T2 credits are spent on the one, machines are
chosen by the other.
"""

import math
from collections.abc import Sequence
from itertools import count, pairwise
from typing import NamedTuple

from loadtests.sizing import costs, machines
from loadtests.sizing.costs import InsertCost
from loadtests.sizing.machines import Machine

DAY = 86_400
MICRO = 1e-6
GB = 1e9
HISTORY_SECONDS = 10  # a reader pulls one history so often, as HACS does for each staff member
WINDOW_SECONDS = 15 * 60
MEMBERS = 3
SYSTEM_GB = 8
LARGEST_DISK_GB = 4000  # a member with more takes a day to be made anew
LARGEST = 10_000_000


class Demand(NamedTuple):
    """Who sends and reads: people, seconds between detections, readers, days that are kept."""

    people: int
    interval: float
    readers: int
    retention: float

    @property
    def rate(self) -> float:
        """Return detections a second."""
        return self.people / self.interval

    @property
    def reads(self) -> float:
        """Return histories a second."""
        return self.readers / HISTORY_SECONDS


class Taken(NamedTuple):
    """Cores that the parts of one box take."""

    idle: float
    gateway: float
    services: float
    mongod: float
    sealing: float

    @property
    def total(self) -> float:
        """Return all of it."""
        return sum(self)


class Limit(NamedTuple):
    """Something that ends growth, and what share of it is used; above 1 it does not suffice."""

    name: str
    used: float
    widened: bool  # by more or larger machines


class Part(NamedTuple):
    """So many machines of a type, each with its disk, for one part of the system."""

    name: str
    machine: Machine
    machines: int
    used: float  # cores of one
    disk_gb: float
    iops: float

    @property
    def money(self) -> float:
        """Return $ a month."""
        more_iops = max(0.0, self.iops - machines.GP3_FREE_IOPS)
        each = (
            self.machine.price * machines.HOURS_A_MONTH
            + self.disk_gb * machines.GP3_GB
            + more_iops * machines.GP3_IOPS
        )
        return self.machines * each


class Plan(NamedTuple):
    """What to buy."""

    demand: Demand
    shards: int
    members: int  # of each set
    services: int
    gateways: int
    parts: Sequence[Part]
    limits: Sequence[Limit]

    @property
    def money(self) -> float:
        """Return $ a month."""
        return sum(part.money for part in self.parts)

    @property
    def breaks_first(self) -> Limit:
        """Return the limit that growth meets first."""
        return max(self.limits, key=lambda limit: limit.used)

    @property
    def machines_break_first(self) -> Limit:
        """Return the limit that growth meets first of those that machines widen."""
        widened = [limit for limit in self.limits if limit.widened]
        return max(widened, key=lambda limit: limit.used)


def cost_at(rate: float) -> InsertCost:
    """Return what a detection takes of each part at so many a second, between what was measured."""
    lines = costs.INSERTS
    rate = min(max(rate, lines[0].rate), lines[-1].rate)
    for low, high in pairwise(lines):
        if rate <= high.rate:
            part = math.log(rate / low.rate) / math.log(high.rate / low.rate)
            return InsertCost(*(a * (b / a) ** part for a, b in zip(low, high, strict=True)))
    raise AssertionError


def crowd_factor(people: float) -> float:
    """Return how much more mongod takes when so many people send to it, against 14.

    Beyond the largest crowd that was measured it goes on as between the last two.
    """
    if people <= costs.CROWDS[0][0]:
        return 1.0
    for (fewer, less), (more, most) in pairwise(costs.CROWDS):
        if people <= more or (more, most) == costs.CROWDS[-1]:
            return less + (most - less) * math.log(people / fewer) / math.log(more / fewer)
    raise AssertionError


def taken(demand: Demand) -> Taken:
    """Return what one box takes at this rate, all day."""
    cost = cost_at(demand.rate)
    seal = costs.SEAL_SERVICES.value + costs.SEAL_MONGOD.value
    sealed = demand.rate if demand.retention > costs.ROW_DAYS.value else 0
    return Taken(
        costs.IDLE.value,
        (demand.rate * cost.gateway + demand.reads * costs.READ_GATEWAY.value) * MICRO,
        (demand.rate * cost.services + demand.reads * costs.READ_SERVICES.value) * MICRO,
        (
            demand.rate * cost.mongod * crowd_factor(demand.people)
            + demand.reads * costs.READ_MONGOD.value
        )
        * MICRO,
        sealed * seal * MICRO,
    )


def rate_of_box(cores: float) -> float:
    """Return how many detections a second a box of so many cores takes at the most."""
    cost = costs.GROUPED
    return cores / ((cost.services + cost.gateway + cost.mongod) * MICRO)


def gateway_need(demand: Demand, *, tls: bool) -> float:
    """Return the cores that the gateways need; TLS with a handshake for each detection."""
    each = costs.GROUPED.gateway + (costs.HANDSHAKE.value if tls else 0)
    return (demand.rate * each + demand.reads * costs.READ_GATEWAY.value) * MICRO


def services_need(demand: Demand) -> float:
    """Return the cores that the ingest services need; one process uses one at most."""
    each = costs.GROUPED.services + costs.SEAL_SERVICES.value
    return (demand.rate * each + demand.reads * costs.READ_SERVICES.value) * MICRO


def insert_in_shards(shards: int) -> float:
    """Return µs of mongod for a detection when a group is divided among so many shards."""
    together = max(1.0, costs.GROUP.value / shards)
    alone = costs.GROUPED.mongod - costs.COMMAND.value / costs.GROUP.value
    return alone + costs.COMMAND.value / together


def shard_need(demand: Demand, shards: int) -> float:
    """Return the cores that each member of a shard needs; a secondary as much as its primary."""
    sharded = 1.0
    if shards > 1:
        sharded = costs.SHARDED.value * (1 - costs.ROUTERS_SHARE.value)
    each = insert_in_shards(shards) * sharded * crowd_factor(demand.people / shards)
    insert = demand.rate * (each + costs.SEAL_MONGOD.value)
    return (insert + demand.reads * costs.READ_MONGOD.value) * MICRO / shards


def routers_need(demand: Demand, shards: int) -> float:
    """Return the cores that all routers need."""
    if shards == 1:
        return 0.0
    each = insert_in_shards(shards) * costs.SHARDED.value * costs.ROUTERS_SHARE.value
    return (demand.rate * each + demand.reads * costs.READ_MONGOD.value) * MICRO


def disk_gb(demand: Demand, shards: int) -> float:
    """Return the disk of one member in GB, not fuller than it may be, with the system's own."""
    row_days = min(demand.retention, costs.ROW_DAYS.value)
    data = demand.rate * DAY * row_days * costs.ROW.value
    data += demand.rate * DAY * (demand.retention - row_days) * costs.SEALED.value
    data += demand.rate * 3600 * costs.OPLOG_HOURS.value * costs.OPLOG.value
    return SYSTEM_GB + data / GB / shards / costs.FULL.value


def cache_gb(demand: Demand, shards: int) -> float:
    """Return the cache in GB that a member needs, so that inserts stay quick."""
    rows = demand.rate * costs.CACHE_SECONDS.value
    return rows * costs.CACHED_ROW.value / GB / shards


def credit_hours(box: Machine, cores: float) -> float:
    """Return how long a full account of credits lasts where so many cores are busy, in hours."""
    more = cores - box.cpus * box.baseline
    return box.credits / 60 / more if more > 0 else math.inf


def iops(demand: Demand, shards: int) -> float:
    """Return the writes a second of one member: journal, and a minute's pages of a checkpoint."""
    rate = demand.rate / shards
    pages = min(demand.people / shards, rate * 60) * costs.PAGES.value
    return min(rate, costs.COMMITS.value) + pages / 60


def plan(demand: Demand) -> Plan:
    """Return the cheapest of one box, three hosts, and machines for each part, that suffices."""
    return _one_box(demand) or _three_hosts(demand) or _machines_for_each_part(demand)


def _one_box(demand: Demand) -> Plan | None:
    takes = taken(demand).total
    need = costs.IDLE.value + (
        gateway_need(demand, tls=False) + services_need(demand) + shard_need(demand, 1)
    )
    for box in machines.BOXES:
        cpu = need / (box.cpus * costs.FULL.value)
        credit = takes / (box.cpus * box.baseline)
        disk = disk_gb(demand, 1)
        cache = cache_gb(demand, 1) / box.cache_gb
        if max(cpu, credit, cache) <= 1 and disk <= LARGEST_DISK_GB:
            limits = [Limit("CPU of the box", cpu, widened=True), *_limits(demand)]
            limits.append(Limit("mongod's cache", cache, widened=True))
            if box.credits:
                limits.append(Limit("CPU credits of the box", credit, widened=True))
            parts = [Part("everything", box, 1, takes, disk, iops(demand, 1))]
            return Plan(demand, 1, 1, 2, 1, parts, limits)
    return None


def _three_hosts(demand: Demand) -> Plan | None:
    """Return three equal hosts: a member of the set, services and a gateway on each."""
    shared = gateway_need(demand, tls=True) + services_need(demand)
    # Two have to do the work of three.
    need = shared / (MEMBERS - 1) + shard_need(demand, 1) + costs.IDLE.value
    disk = disk_gb(demand, 1)
    for host in machines.HOSTS:
        cpu = need / (host.cpus * costs.FULL.value)
        cache = cache_gb(demand, 1) / host.cache_gb
        if max(cpu, cache) <= 1 and disk <= LARGEST_DISK_GB:
            gateways = max(MEMBERS, _processes(gateway_need(demand, tls=True)))
            services = max(MEMBERS, _processes(services_need(demand)))
            limits = [Limit("CPU of two of three hosts", cpu, widened=True), *_limits(demand)]
            limits.append(Limit("mongod's cache", cache, widened=True))
            parts = [Part("everything", host, MEMBERS, need, disk, iops(demand, 1))]
            return Plan(demand, 1, MEMBERS, services, gateways, parts, limits)
    return None


def _machines_for_each_part(demand: Demand) -> Plan:
    shards = next(
        shards
        for shards in count(1)
        if shard_need(demand, shards) <= machines.SHARD_MEMBERS.cpus * costs.FULL.value
        and disk_gb(demand, shards) <= LARGEST_DISK_GB
        and cache_gb(demand, shards) <= machines.SHARD_MEMBERS.cache_gb
        and iops(demand, shards) <= machines.GP3_MOST_IOPS
    )
    gateways = max(2, _processes(gateway_need(demand, tls=True)))
    services = max(MEMBERS, _processes(services_need(demand)))
    middle = services_need(demand) + routers_need(demand, shards)
    parts = [
        _part("gateways", machines.GATEWAYS, gateway_need(demand, tls=True), 2),
        _part("ingest services, routers", machines.SERVICES, middle, 2),
        Part(
            "members of shards",
            machines.SHARD_MEMBERS,
            shards * MEMBERS,
            shard_need(demand, shards),
            disk_gb(demand, shards),
            iops(demand, shards),
        ),
    ]
    if shards > 1:
        parts.append(Part("config servers", machines.CONFIG_SERVERS, MEMBERS, 0.1, SYSTEM_GB, 0))
    limits = [
        Limit(
            f"CPU of the {part.name}",
            part.used / part.machine.cpus / costs.FULL.value,
            widened=True,
        )
        for part in parts
    ]
    return Plan(demand, shards, MEMBERS, services, gateways, parts, [*limits, *_limits(demand)])


def _part(name: str, machine: Machine, need: float, least: int) -> Part:
    """Return as many machines as these cores need, and one more, that one may be lost."""
    working = max(least - 1, math.ceil(need / (machine.cpus * costs.FULL.value)))
    return Part(name, machine, working + 1, need / working, SYSTEM_GB, 0)


def _processes(need: float) -> int:
    return math.ceil(need / costs.FULL.value)


def _limits(demand: Demand) -> list[Limit]:
    """Return the limits that no machine widens: answers that tell of everybody."""
    rows = demand.rate * WINDOW_SECONDS
    return [
        Limit("`/retrieveformonitoring`", rows / costs.LARGEST_WINDOW.value, widened=False),
        Limit(
            "`/now` and `/staff` of everybody",
            demand.people / costs.CROWD_TOLD.value,
            widened=False,
        ),
    ]
