"""The store in one SQLite file, owned by one process."""
