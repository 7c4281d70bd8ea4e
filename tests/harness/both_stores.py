"""The stores that the conformance suite runs on, by name."""

from tests.harness.backends import NewBackend, SqliteBackend
from tests.harness.postgres_backend import PostgresBackend

BACKENDS: dict[str, NewBackend] = {"postgres": PostgresBackend, "sqlite": SqliteBackend}
