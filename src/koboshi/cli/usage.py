"""`koboshi usage`: what the models were used for, and what that cost."""

from pathlib import Path

import click

from koboshi.app.prices import prices_of
from koboshi.app.zone import zone_of
from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.options import failures_told, home_options, json_option, show_json
from koboshi.cli.tables import echo_table
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.requests import GetUsage
from koboshi.control.usage import UsageReply, UsageRow
from koboshi.domain.durations import duration
from koboshi.domain.usage import UsageLine, begin_of_day, money, spent_of, spent_words

DAYS = 30
DAYS_MAX = 3_650


@click.command()
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    default=DAYS,
    show_default=True,
    help="Of how many days, with today.",
)
@home_options
@json_option
def usage(days: int, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """What each chat and person used of each model: replies, tokens, speech that was written down,
    and the cost where a price is known."""
    with failures_told(as_json):
        config = loaded(home, config_file)
        since_ms = begin_of_day(SystemClock().now_ms(), zone_of(config), days_before=days - 1)
        answer = ask_owner(config, GetUsage(since_ms=since_ms))
        if as_json:
            show_json(answer)
            return
        prices = prices_of(config)
        rows = read_answer(answer, UsageReply).usage
        cells = []
        for row in rows:
            spent = spent_of([_line(row)], prices)
            cost = money(spent.micros) if spent.is_priced else ""
            speech = duration(row.seconds * 1_000) if row.seconds else ""
            numbers = (str(row.calls), f"{row.tokens_in:,}", f"{row.tokens_out:,}", speech, cost)
            names = (str(row.route), row.person, row.model)
            cells.append(tuple(map(escaped, (*names, *numbers))))
        heads = ("chat", "person", "model", "replies", "tokens in", "out", "speech", "cost")
        echo_table(heads, cells, ["  ".join(each) for each in cells], "no model was asked")
        if rows:
            click.echo(f"In all: {spent_words(spent_of(map(_line, rows), prices))}")


def _line(row: UsageRow) -> UsageLine:
    return UsageLine(
        person=row.person,
        model=row.model,
        calls=row.calls,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        seconds=row.seconds,
    )
