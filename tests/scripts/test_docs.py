"""The pages that are drawn from the code say what the code says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koboshi.config.schema import SCHEMA, keys_below
from koboshi.domain import inbox, outbox, process, turn, watch
from koboshi.domain.agent_death import DEATH_RULES
from koboshi.domain.inbox import EntryState
from koboshi.domain.machine import Machine
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.process import ProcessState
from koboshi.domain.recovery import RULES, Rule
from koboshi.domain.turn import TurnState
from koboshi.domain.watch import WatcherState
from koboshi.runtime.metric_table import METRICS
from scripts import reference_tables, rules_table, state_diagrams
from tests.fakes.plugins.installing import EXAMPLE, EXAMPLE_CHANNEL

PAGES = {
    "state-machines": (state_diagrams.PAGE, state_diagrams.render),
    "recovery-rules": (rules_table.PAGE, rules_table.render),
    "reference": (reference_tables.PAGE, reference_tables.render),
}

MACHINES = (turn.MACHINE, inbox.MACHINE, outbox.MACHINE, process.MACHINE, watch.MACHINE)


@pytest.mark.parametrize("page, render", PAGES.values(), ids=PAGES)
def test_a_generated_page_is_up_to_date(page: Path, render: Callable[[], str]) -> None:
    assert page.read_text(encoding="utf-8") == render(), "run `make docs-generated`"


@pytest.mark.parametrize("page, render", PAGES.values(), ids=PAGES)
def test_a_page_is_the_same_however_often_it_is_drawn(
    page: Path, render: Callable[[], str]
) -> None:
    assert render() == render()


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_the_table_of_a_machine_holds_every_transition(machine: Machine[Any, Any]) -> None:
    """Issue 14, point 3: all five machines are drawn."""
    section = state_diagrams.machine_section(machine, "")
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \| `(\w+)` \|$", section, re.M)

    assert sorted(rows) == sorted(
        (event, before, after) for (before, event), after in machine.transitions.items()
    )


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_the_diagram_of_a_machine_holds_every_transition(machine: Machine[Any, Any]) -> None:
    """Issue 14, point 3: all five machines are drawn."""
    diagram = state_diagrams.diagram(machine)
    arrows = re.findall(r"^    (\w+) --> (\w+): (.+)$", diagram, re.M)

    assert f"```mermaid\n{diagram}\n```" in state_diagrams.render()
    assert sorted(
        (before, event, after) for before, after, events in arrows for event in events.split(", ")
    ) == sorted((before, event, after) for (before, event), after in machine.transitions.items())


@pytest.mark.parametrize(
    "states", [TurnState, EntryState, DeliveryState, ProcessState, WatcherState]
)
def test_every_state_has_a_line_of_its_own(
    states: type[TurnState | EntryState | DeliveryState | ProcessState | WatcherState],
) -> None:
    page = state_diagrams.render()

    assert all(f"\n| `{state}` | " in page for state in states)


def test_the_rules_stand_on_the_page_in_their_order() -> None:
    labels = re.findall(r"^\| \d+ \| `([\w-]+)` \|", rules_table.render(), re.M)

    assert labels == [*(rule.label for rule in RULES), *(rule.label for rule in DEATH_RULES)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_every_rule_on_the_page_has_a_verdict(rule: Rule) -> None:
    everywhere = {rules_table.verdicts(rule, is_interactive=with_a) for with_a in (False, True)}

    assert everywhere != {"—"}


@pytest.mark.parametrize(
    "page_name, file",
    [
        ("writing-a-tool.md", EXAMPLE / "koboshi_jot.py"),
        ("writing-a-tool.md", EXAMPLE / "pyproject.toml"),
        ("writing-a-channel.md", EXAMPLE_CHANNEL / "koboshi_folder.py"),
        ("writing-a-channel.md", EXAMPLE_CHANNEL / "pyproject.toml"),
    ],
)
def test_the_example_of_a_plug_in_is_the_one_that_is_tested(page_name: str, file: Path) -> None:
    page = (state_diagrams.PAGE.parent / page_name).read_text(encoding="utf-8")
    example = file.read_text(encoding="utf-8")

    assert f"\n{example}```\n" in page


def test_every_key_is_explained_and_nothing_else() -> None:
    """Issue 14: the meaning of a key stands where the key is described."""
    page = reference_tables.render()
    known = re.findall(r"^\| `([a-z]+\.[\w.<>]+)` \| .* \| \S.* \|$", page, re.M)
    servers = re.findall(
        r"^\| `(\w+)` \| .* \| \S.* \|$", "\n".join(reference_tables.servers()), re.M
    )

    agents = re.findall(
        r"^\| `(\w+)` \| .* \| \S.* \|$", "\n".join(reference_tables.agents()), re.M
    )
    models = re.findall(
        r"^\| `(\w+)` \| .* \| \S.* \|$", "\n".join(reference_tables.models()), re.M
    )
    found = [
        *known,
        *(f"models.<name>.{key}" for key in models),
        *(f"mcp.<name>.{key}" for key in servers),
        *(f"agents.<name>.{key}" for key in agents),
    ]
    keys = [".".join(path) for path in keys_below(SCHEMA)]
    assert sorted(found) == sorted(
        re.sub(r"^(mcp|agents|models|channels\.\w+)\.\w+", r"\1.<name>", key) for key in keys
    )


WISHED = """
build_info boot_time_seconds unclean_boots_total safe_mode draining
inbox_received_total inbox_duplicates_total inbox_refused_total inbox_depth
inbox_oldest_age_seconds accept_duration_seconds message_latency_seconds
turns_total turn_duration_seconds turns_running turns_waiting
turn_resumes_total turn_attempts turn_quarantines_total
steps_total tool_unknown_outcomes_total tool_duration_seconds
llm_request_duration_seconds llm_tokens_total llm_stream_truncated_total llm_retries_total
outbox_depth outbox_oldest_age_seconds outbox_sent_total outbox_ambiguous_total outbox_dead_total
send_duration_seconds rate_limited_seconds_total
adapter_up adapter_reconnects_total adapter_cursor_lag_seconds thaw_events_total
jobs_running jobs_total job_output_dropped_bytes_total
lease_held lease_takeovers_total lease_fenced_total lease_renew_duration_seconds
db_commit_duration_seconds db_errors_total db_wal_bytes db_size_bytes db_backup_age_seconds
db_integrity_last_ok_timestamp_seconds event_loop_lag_seconds disk_free_bytes
auth_failures_total approvals_total sandbox_denials_total
"""
"""What an operator of such a program would look for."""


@pytest.mark.parametrize("name", WISHED.split())
def test_a_metric_is_there_or_the_page_says_why_not(name: str) -> None:
    page = reference_tables.PAGE.read_text(encoding="utf-8")
    _, _, absent = page.partition("What others have, and we have not:")
    is_excused = re.search(rf"^\|[^|]*`koboshi_{name}`[^|]*\| [^|]{{10,}} \|$", absent, re.M)

    assert (f"koboshi_{name}" in METRICS) != bool(is_excused)
