"""The architecture before this one, as the source system had it: only to be compared with.

One small Flask application with the page inside, round robin NGINX before two of them, one MongoDB
with no index but the default. Never deploy it.
"""
