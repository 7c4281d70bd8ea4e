"""Rows of models: benches, and what was used."""

from koboshi.domain.chain import Bench
from koboshi.domain.ids import SessionId
from koboshi.domain.trouble import ModelTrouble
from koboshi.domain.usage import UsageLine
from koboshi.kernel.decode import number, text
from koboshi.kernel.transaction import Reading, Row


def benches_in(tx: Reading) -> tuple[Bench, ...]:
    """All of them, of all nodes."""
    return tuple(map(bench_of, tx.rows("benches")))


def usage_in(tx: Reading, session_id: SessionId, since_ms: int) -> tuple[UsageLine, ...]:
    rows = tx.rows("usage_of_session", session_id=session_id, since_ms=since_ms)
    return tuple(map(usage_of, rows))


def usage_of(row: Row) -> UsageLine:
    person, model, calls, tokens_in, tokens_out, seconds = row
    return UsageLine(
        person=text(person),
        model=text(model),
        calls=number(calls),
        tokens_in=number(tokens_in),
        tokens_out=number(tokens_out),
        seconds=number(seconds),
    )


def bench_of(row: Row) -> Bench:
    model, node, trouble, reason, tries, since_ms, until_ms = row
    return Bench(
        model=text(model),
        node=text(node),
        trouble=ModelTrouble(text(trouble)),
        reason=text(reason),
        tries=number(tries),
        since_ms=number(since_ms),
        until_ms=number(until_ms),
    )
