"""The ingest service alone, in turns with another one."""
