"""Issue 14, point 3: no state changes but through the door. This reads the SQL and the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import koboshi
from koboshi.domain.machine import Machine
from koboshi.kernel.moves import MOVES
from koboshi.kernel.queries import QUERIES
from tests.harness.state_tables import TABLE_OF, TABLES

PACKAGE = Path(koboshi.__file__).parent
DOORS = {"move", "move_one", "move_from"}
UPDATE = re.compile(
    rf"\bUPDATE (?:OR \w+ )?({'|'.join(TABLES)})\b(?: AS \w+)?\s+SET\b(.*?)\bWHERE\b(.*)", re.DOTALL
)
UPSERT = re.compile(r"\bDO UPDATE SET\b(?P<set>.*)", re.DOTALL)
INSERT = re.compile(rf"\bINSERT (?:OR \w+ )?INTO ({'|'.join(TABLES)})\b")
NESTED = re.compile(r"\((?!')[^()]*\)")
SETS_STATE = re.compile(r"(?:^|,)\s*state = (\S+?)(?=,|\s|$)")
STATES_IN = re.compile(r"(?<![.\w])state (?:= (:\w+|'\w+')|IN \(([^)]*)\))")


def bare(clause: str) -> str:
    """A clause without what is in brackets, except a list of words."""
    while NESTED.search(clause):
        clause = NESTED.sub("", clause)
    return clause


def without_comments(query: str) -> str:
    return re.sub(r"--[^\n]*", "", query)


def moving(queries: dict[str, str]) -> Iterator[tuple[str, str, str, frozenset[str]]]:
    """Each statement that sets a state: its name, its table, what it sets, and from where."""
    for name, query in queries.items():
        for table, sets, where in UPDATE.findall(without_comments(query)):
            found = SETS_STATE.findall(bare(sets))
            if found:
                yield name, table, found[0], states_in(bare(where))


def states_in(where: str) -> frozenset[str]:
    found = STATES_IN.findall(where)
    assert len(found) == 1, f"the states it moves from are not said once: {where}"
    one, many = found[0]
    return frozenset(re.findall(r":?\w+", one or many))


def test_every_statement_that_sets_a_state_is_named_with_its_machine_and_events() -> None:
    """Issue 14, point 3."""
    assert {name for name, *_ in moving(dict(QUERIES))} == set(MOVES)


@pytest.mark.parametrize("name", MOVES)
def test_a_statement_moves_from_the_states_of_the_table_to_where_it_says(name: str) -> None:
    """Issue 14, point 3."""
    move = MOVES[name]
    ((_name, table, sets, origins),) = moving({name: QUERIES[name]})
    assert table == TABLE_OF[move.machine.name]
    assert sets == ":after", "the state that is set is the one that advance() gave"
    assert move.events
    if move.is_of_one_state:
        assert origins == {":before"}
        return
    for event in move.events:
        assert origins == move.machine.origins(event), event


def test_the_test_sees_a_statement_that_moves_past_the_door() -> None:
    """Issue 14, point 3: the test of the test."""
    past = {
        "plain": "UPDATE outbox SET unsure = 1, state = 'owed' WHERE state IN ('sending', 'held')",
        "nested": "UPDATE turns SET state = :after WHERE state = 'queued' AND (state <> 'done'\n"
        "    OR EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting'))",
        "other": "UPDATE outbox SET ambiguous = CASE WHEN state = 'sending' THEN 1 END WHERE 1",
    }
    assert list(moving(past)) == [
        ("plain", "outbox", "'owed'", frozenset({"sending", "held"})),
        ("nested", "turns", ":after", frozenset({"queued"})),
    ]
    with pytest.raises(AssertionError, match="not said once"):
        list(moving({"all": "UPDATE outbox SET state = :after WHERE settled_ms IS NULL"}))


def test_no_conflict_of_an_insert_sets_a_state() -> None:
    """Issue 14, point 3."""
    for name, query in QUERIES.items():
        for found in UPSERT.finditer(query):
            if name == "move_set":
                continue  # where the rows of a store are: a mark of its move, and no machine
            assert not SETS_STATE.search(found["set"]), name


def test_a_row_begins_in_a_state_in_which_its_machine_begins() -> None:
    """Issue 14, point 3."""
    machines: dict[str, Machine[Any, Any]] = {
        TABLE_OF[move.machine.name]: move.machine for move in MOVES.values()
    }
    begun = {}
    for name, query in QUERIES.items():
        for table in INSERT.findall(query):
            states = {str(state) for state in TABLES[table]}
            words = set(re.findall(r"'(\w+)'", query.partition("FROM outbox JOIN")[0]))
            begun[name] = words & states
            assert begun[name] <= machines[table].begins, name
    assert begun == {
        "entry_insert": set(),  # its caller says it: EntryState
        "turn_insert": {"queued"},
        "delivery_insert": {"owed"},
        "delivery_again": {"owed"},
        "process_insert": {"starting"},
        "watcher_insert": {"armed"},
        "schedule_insert": {"armed"},
        "goal_insert": {"active"},
        "child_insert": {"waiting"},
    }


def test_no_other_sql_sets_a_state() -> None:
    """Issue 14, point 3: neither a trigger nor a script beside the named queries."""
    for path in PACKAGE.rglob("*.sql"):
        if "migrations" in path.parts or path.name == "queries.sql":
            continue
        for statement in without_comments(path.read_text(encoding="utf-8")).split(";"):
            assert not list(moving({path.name: statement})), path


@pytest.mark.parametrize("table", TABLES)
def test_the_schema_allows_the_states_of_the_machine_and_no_other(table: str) -> None:
    """Issue 14, point 3."""
    schema = (PACKAGE / "kernel" / "schema.sql").read_text(encoding="utf-8")
    columns = schema.partition(f"CREATE TABLE {table} (")[2]
    check = re.search(r"\n    state +TEXT NOT NULL CHECK \(state IN \(([^)]*)\)", columns)
    assert check is not None
    assert re.findall(r"\w+", check[1]) == [str(state) for state in TABLES[table]]


@pytest.mark.slow
def test_only_the_door_carries_these_statements_out() -> None:
    """Issue 14, point 3: no one hands the name of such a statement to the transaction itself."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = {id(each) for call in ast.walk(tree) for each in passed_on(call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in MOVES and id(node) not in known:
                is_table = path == PACKAGE / "kernel" / "moves.py"
                assert is_table, f"{path}:{node.lineno}: {node.value!r} goes past the door"


def passed_on(call: ast.AST) -> list[ast.expr]:
    """What a call hands to the door, or to the log: an event there may have such a name."""
    match call:
        case ast.Call(func=ast.Name(id=door), args=[_tx, query, *_]) if door in DOORS:
            return [query]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log")), args=[event, *_]):
            return [event]
        case _:
            return []
