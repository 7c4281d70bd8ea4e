"""Every statement that this store sends, by name: those of the kernel, and its own. An own one
takes the place of one of the kernel with the same name."""

from collections.abc import Mapping
from functools import cache

from koboshi.kernel.queries import QUERIES
from koboshi.kernel.sql import load_queries
from koboshi.stores.postgres.schema import dialect
from koboshi.stores.postgres.translate import Statement


@cache
def statements() -> Mapping[str, Statement]:
    own = load_queries("koboshi.stores.postgres", "own.sql")
    return {name: dialect().statement(query) for name, query in {**QUERIES, **own}.items()}
