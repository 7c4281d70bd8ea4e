"""A configuration that makes no sense: every key, with every kind of value that it was not made
for, in the file and in the environment. Either it can be used, or the error names the key."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.config import Config, ConfigError, load
from koboshi.config.schema import SCHEMA, keys_below
from tests.harness.tally import WANTS_ALL
from tests.hostile.wild import NASTY, TEXTS, fuzzed

VALUES = [
    "0",
    "-1",
    "9223372036854775808",
    "1" + "0" * 400,
    "1e308",
    "inf",
    "nan",
    "true",
    '""',
    '"\\u0000"',
    '"\\u202E"',
    '"a\\nb"',
    '"' + "a" * 100_000 + '"',
    '"../../etc/passwd"',
    "[]",
    "[[[[]]]]",
    "[1, 'a', true, 1.5]",
    "[" + "1," * 5_000 + "]",
    "{}",
    "{a = {b = {c = 1}}}",
    "1979-05-27T07:32:00Z",
]


KEYS = sorted(keys_below(SCHEMA))


def portion(values: list[str], name: str) -> list[str]:
    """All of them in the long campaign; otherwise every sixth, others for each key."""
    return values if WANTS_ALL else values[len(name) % 6 :: 6]


def outcome(folder: Path, text: str, environ: dict[str, str]) -> Config | ConfigError:
    file = folder / "koboshi.toml"
    file.write_text(text, errors="replace")
    file.chmod(0o600)
    try:
        return load(folder / "home", file, environ)
    except ConfigError as error:
        assert error.exit_code == 78, "raised where it belongs"  # noqa: PT017
        return error


def judge(made: Config | ConfigError, section: str, name: str) -> None:
    if isinstance(made, Config):
        return
    for line in str(made).splitlines():
        assert line.isprintable(), line
        assert len(line) < 2_000, line
    said = str(made)
    assert section in said or name in said, said


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_a_wrong_value_is_named_by_its_key(tmp_path: Path, key: tuple[str, ...]) -> None:
    *place, name = key
    section = ".".join(place)
    for value in portion(VALUES, name):
        made = outcome(tmp_path, f"[{section}]\n{name} = {value}\n", {})
        judge(made, section, name)
    variable = "__".join(("KOBOSHI", *key)).upper()
    for text in portion(NASTY, name):
        if "\0" not in text:  # no environment holds one
            judge(outcome(tmp_path, "", {variable: text}), section, name)


@fuzzed(60)
@example(section="channels.telegram." + "a" * 10_000, name="b", text="c", variable="D")
@example(section="gateway", name="busy", text="queue", variable="__")
@example(section="mcp.x", name="command", text="\ud800", variable="MCP__X__ENV")
@given(
    section=st.sampled_from(["gateway", "model", "channels.web.main", "mcp.x", "nowhere"]) | TEXTS,
    name=st.sampled_from([key[-1] for key in KEYS]) | TEXTS,
    text=TEXTS,
    variable=TEXTS,
)
def test_any_section_key_and_variable_is_used_or_named(
    tmp_path: Path, section: str, name: str, text: str, variable: str
) -> None:
    environ = {f"KOBOSHI__{variable}": text}
    written = text.replace("'", "")
    for content in (f"[{section}]\n{name} = '{written}'", f'["{section}"]\n"{name}" = 1'):
        made = outcome(tmp_path, content, environ)
        if isinstance(made, ConfigError):
            assert str(made)
            assert str(made).replace("\n", "").isprintable()
