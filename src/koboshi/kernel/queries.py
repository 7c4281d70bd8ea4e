"""The text of every named query. A store performs it; a verb knows only the names."""

from collections.abc import Mapping

from koboshi.kernel.sql import load_queries

QUERIES: Mapping[str, str] = load_queries("koboshi.kernel", "queries.sql")
