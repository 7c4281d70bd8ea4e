"""Rows on their way between the two stores: moves, and backups of PostgreSQL as files of SQLite."""
