"""The kernel's queries in the dialect of PostgreSQL."""

import pytest

from koboshi.kernel.queries import QUERIES
from koboshi.stores.postgres.schema import dialect, schema_statements
from koboshi.stores.postgres.translate import with_extremes
from tests.harness.homes import Home
from tests.harness.postgres_backend import PostgresBackend


async def test_the_server_understands_every_query(home: Home) -> None:
    backend = home.backend
    assert isinstance(backend, PostgresBackend)

    refused = {}
    for name, query in QUERIES.items():
        words = backend.refusal_of(dialect().statement(query).text)
        if words is not None:
            refused[name] = words

    assert refused == {}


def test_each_name_that_is_no_number_has_a_parameter_for_each_place() -> None:
    statement = dialect().statement("SELECT 1 FROM turns WHERE person = :person OR rule = :person;")

    assert statement.text == "SELECT 1 FROM turns WHERE person = $1 OR rule = $2"
    assert statement.names == ("person", "person")


def test_a_number_has_one_parameter_with_its_type() -> None:
    statement = dialect().statement("SELECT :now + :now, 'a:now';")

    assert statement.text == "SELECT $1::bigint + $1::bigint, 'a:now'"
    assert statement.names == ("now",)


@pytest.mark.parametrize(
    "text, translated",
    [
        ("max(a)", "max(a)"),
        ("max(a, b)", "greatest(a, b)"),
        ("max(0, max(a))", "greatest(0, max(a))"),
        ("min(coalesce(max(a), 0), b)", "least(coalesce(max(a), 0), b)"),
        ("max((SELECT min(a, ',') FROM t))", "max((SELECT least(a, ',') FROM t))"),
    ],
)
def test_the_greatest_of_several_is_no_aggregate(text: str, translated: str) -> None:
    assert with_extremes(text) == translated


def test_an_insert_gives_the_id_of_its_row() -> None:
    statement = dialect().statement(QUERIES["session_insert"])

    assert statement.gives_id
    assert statement.text.endswith("RETURNING session_id")


def test_no_check_is_left_to_be_parsed_by_every_statement() -> None:
    made = [each for each in schema_statements() if each.startswith("CREATE TABLE")]

    assert not [each for each in made if "CHECK" in each]
    assert len([each for each in schema_statements() if "FUNCTION check_" in each]) > 10
