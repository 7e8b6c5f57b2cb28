"""MongoDB: where the binary comes from, how it is set up, and the directory of beacons."""

import sys

# As the ingest service's storage says: else the driver imports cryptography, and does not use it.
sys.modules["pymongo.pyopenssl_context"] = None  # type: ignore[assignment]
