"""Which plug-ins are used, and what they are given."""

import json
from pathlib import Path

import pytest

from koboshi.config import ConfigError, describe, secrets_of
from tests.harness.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_all_plugins_are_used_unless_something_is_said(machine: Machine) -> None:
    tools = machine.load().tools

    assert (tools.plugins, tools.settings) == (True, ())


@pytest.mark.parametrize(
    "written, variable, expected",
    [
        ("true", "true", True),
        ("false", "false", False),
        ('["jot", "dice"]', "jot, dice", ("jot", "dice")),
        ('["jot"]', '["jot"]', ("jot",)),
    ],
)
def test_plugins_are_switched_or_listed(
    machine: Machine, written: str, variable: str, expected: object
) -> None:
    assert machine.load(f"[tools]\nplugins = {written}").tools.plugins == expected
    assert machine.load(KOBOSHI__TOOLS__PLUGINS=variable).tools.plugins == expected


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("plugins = 5", "tools.plugins must be true, false or a list of names"),
        ("plugins = []", "tools.plugins must not be empty"),
        ("plugins = [5]", "tools.plugins must be a text"),
        ("plugin = true", 'unknown key "tools.plugin"; did you mean "tools.plugins"?'),
        ("settings = 5", "tools.settings must be a table of tables"),
        ("settings = { jot = 5 }", "tools.settings must be a table of tables"),
        ("settings = { jot = { at = 2020-01-01 } }", '"jot" must hold texts, numbers'),
        ("settings = { jot = { at = nan } }", '"jot" must hold texts, numbers'),
    ],
)
def test_a_mistake_about_plugins_is_named(machine: Machine, line: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as told:
        machine.load(f"[tools]\n{line}")

    assert complaint in str(told.value).replace("\n", "; ")
    assert "line 2" in str(told.value) or ":2" in str(told.value)


def test_settings_arrive_as_they_were_written_and_no_one_is_shown_them(machine: Machine) -> None:
    config = machine.load(
        '[tools.settings.jot]\nfile = "list.txt"\n'
        '[tools.settings.dice]\nsides = 6\napi_key = "canary-of-dice"\n'
        'more = { token = "canary-of-more", on = true }\n'
        "[tools.terminal]\ntimeout_seconds = 5\n"
    )

    given = {name: json.loads(table.reveal()) for name, table in config.tools.settings}
    assert given["jot"] == {"file": "list.txt"}
    assert given["dice"]["more"] == {"token": "canary-of-more", "on": True}
    assert config.tools.terminal.timeout_seconds == 5
    shown = str(describe(config))
    assert "canary" not in shown
    assert "canary" not in repr(config)
    assert {"canary-of-dice", "canary-of-more"} <= set(secrets_of(config))
    assert "list.txt" not in secrets_of(config)
