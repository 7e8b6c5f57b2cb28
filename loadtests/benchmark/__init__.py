"""The ingest service alone, inside 0.3 CPU and 64 MiB, in turns with another one.

    .venv/bin/python -m loadtests.benchmark [--against CHECKOUT] [--rounds 3] [--seconds 3] [CASE]

The other is the old architecture's (loadtests/baseline), or that of another checkout of this
repository. Both work on the same real mongod, which runs outside the limits like the load itself.
Every response is verified: a history that is written to while it is read must hold all that was
acknowledged before the question and nothing that nobody sent.
"""
