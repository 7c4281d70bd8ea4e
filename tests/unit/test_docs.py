"""The pages that are drawn from the code say what the code says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from koboshi.domain.outbox import DeliveryState
from koboshi.domain.process import ProcessState
from koboshi.domain.recovery import RULES, Rule
from koboshi.domain.turn import TRANSITIONS, TurnState
from koboshi.domain.watch import WatcherState
from scripts import rules_table, state_diagrams
from tests.fakes.plugins.installing import EXAMPLE

PAGES = {
    "state-machines": (state_diagrams.PAGE, state_diagrams.render),
    "recovery-rules": (rules_table.PAGE, rules_table.render),
}


@pytest.mark.parametrize("page, render", PAGES.values(), ids=PAGES)
def test_a_generated_page_is_up_to_date(page: Path, render: Callable[[], str]) -> None:
    assert page.read_text(encoding="utf-8") == render(), "run `make docs-generated`"


@pytest.mark.parametrize("page, render", PAGES.values(), ids=PAGES)
def test_a_page_is_the_same_however_often_it_is_drawn(
    page: Path, render: Callable[[], str]
) -> None:
    assert render() == render()


def test_the_table_of_turns_holds_every_transition() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \| `(\w+)` \|$", state_diagrams.render(), re.M)

    assert sorted(rows) == sorted(
        (event, before, after) for (before, event), after in TRANSITIONS.items()
    )


def test_the_diagram_of_turns_holds_every_transition() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+): (.+)$", state_diagrams.turn_diagram(), re.M)

    assert sorted(
        (before, event, after) for before, after, events in arrows for event in events.split(", ")
    ) == sorted((before, event, after) for (before, event), after in TRANSITIONS.items())


@pytest.mark.parametrize("states", [TurnState, DeliveryState, ProcessState, WatcherState])
def test_every_state_has_a_line_of_its_own(
    states: type[TurnState | DeliveryState | ProcessState | WatcherState],
) -> None:
    page = state_diagrams.render()

    assert all(f"\n| `{state}` | " in page for state in states)


def test_the_rules_stand_on_the_page_in_their_order() -> None:
    labels = re.findall(r"^\| \d+ \| `([\w-]+)` \|", rules_table.render(), re.M)

    assert labels == [rule.label for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_every_rule_on_the_page_has_a_verdict(rule: Rule) -> None:
    everywhere = {rules_table.verdicts(rule, is_interactive=with_a) for with_a in (False, True)}

    assert everywhere != {"—"}


@pytest.mark.parametrize("name", ["koboshi_jot.py", "pyproject.toml"])
def test_the_example_of_a_tool_is_the_one_that_is_tested(name: str) -> None:
    page = (state_diagrams.PAGE.parent / "writing-a-tool.md").read_text(encoding="utf-8")
    example = (EXAMPLE / name).read_text(encoding="utf-8")

    assert f"\n{example}```\n" in page
