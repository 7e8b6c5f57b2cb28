"""EC2's usual types: on demand, Linux, us-east-1. Prices are the reader's to check.

They are Amazon's list prices as its writer remembered them at PRICES_OF, not looked up there.
"""

from typing import NamedTuple

PRICES_OF = "2026-11-28"
HOURS_A_MONTH = 730
GP3_GB = 0.08  # $ a month
GP3_IOPS = 0.005  # $ a month for each above those that are free
GP3_FREE_IOPS = 3000
GP3_MOST_IOPS = 16_000


class Machine(NamedTuple):
    """A type: vCPUs, GiB of memory, $ an hour.

    `baseline` is the share of its CPU that it earns as credits, and is held to without any;
    `credits` is how many minutes of one vCPU it saves at most, and 0 for what needs none.
    """

    name: str
    cpus: int
    memory: int
    price: float
    baseline: float = 1.0
    credits: int = 0

    @property
    def cache_gb(self) -> float:
        """Return mongod's cache: that of `mongo/mongod.conf`, or half of what others leave."""
        return max(0.048, (self.memory - 2) / 2)


# One box for everything, cheapest first.
BOXES = (
    Machine("t2.micro", 1, 1, 0.0116, 0.1, 144),
    Machine("t2.small", 1, 2, 0.023, 0.2, 288),
    Machine("t2.medium", 2, 4, 0.0464, 0.2, 576),
    Machine("t2.large", 2, 8, 0.0928, 0.3, 864),
    Machine("m6i.large", 2, 8, 0.096),
)
# Three hosts, each with a part of everything.
HOSTS = (
    Machine("m6i.xlarge", 4, 16, 0.192),
    Machine("m6i.2xlarge", 8, 32, 0.384),
)
# Machines for each part.
GATEWAYS = Machine("c6i.xlarge", 4, 8, 0.17)
SERVICES = Machine("c6i.2xlarge", 8, 16, 0.34)
CONFIG_SERVERS = Machine("m6i.large", 2, 8, 0.096)
SHARD_MEMBERS = Machine("r6i.2xlarge", 8, 64, 0.504)
