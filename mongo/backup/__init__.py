"""Backups of the database: all collections as of one moment, in files of compressed BSON."""
