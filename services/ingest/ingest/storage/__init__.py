"""All that knows the MongoDB driver: one module per collection, errors in the service's words."""

import sys

# The driver looks for PyOpenSSL by importing cryptography, which is there for OpenID Connect: 8 MiB
# for nothing. None: it finds neither.
sys.modules["pymongo.pyopenssl_context"] = None  # type: ignore[assignment]
