"""MCP servers in the configuration: `[mcp.<name>]`."""

from pathlib import Path

import pytest

from koboshi.config import McpConfig, Secret, describe, secrets_of
from tests.harness.machine import Machine

PROGRAM = """
[mcp.files]
enabled = true
command = "npx"
args = ["-y", "some-server", "~/notes, all of them"]
env = { LEVEL = "debug", API_KEY = "canary-in-env" }
env_vars = ["FILES_TOKEN", "REGION"]
trust_hints = true
approval = "always"
timeout_seconds = 12.5
tools = ["read", "write", "read"]
"""

ADDRESS = """
[mcp.tracker]
url = "https://tracker.example/mcp/"
token_env = "TRACKER_TOKEN"

[mcp.tracker.headers]
X-Team = "canary-in-header"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_there_is_no_server_unless_one_is_named(machine: Machine) -> None:
    assert machine.load().mcp == ()


def test_a_server_needs_little(machine: Machine) -> None:
    (server,) = machine.load('[mcp.files]\ncommand = "files-server"').mcp

    assert server == McpConfig(name="files", command="files-server")
    assert (server.trust_hints, server.approval, server.timeout_seconds) == (
        False,
        "dangerous",
        300,
    )
    assert server.tools is None


def test_a_program_arrives_with_what_it_is_given_and_nothing_else(machine: Machine) -> None:
    config = machine.load(PROGRAM, FILES_TOKEN="canary-passed", REGION="north", OTHER="secret")

    (server,) = config.mcp
    assert config.enabled_mcp == (server,)
    assert (server.command, server.args) == ("npx", ("-y", "some-server", "~/notes, all of them"))
    assert server.env == (("LEVEL", Secret("debug")), ("API_KEY", Secret("canary-in-env")))
    assert server.passed == (
        ("FILES_TOKEN", Secret("canary-passed")),
        ("REGION", Secret("north")),
    )
    assert (server.trust_hints, server.approval, server.timeout_seconds) == (True, "always", 12.5)
    assert server.tools == ("read", "write")


def test_an_address_arrives_as_it_was_written(machine: Machine) -> None:
    (server,) = machine.load(ADDRESS, TRACKER_TOKEN="canary-token").mcp

    assert server.url == "https://tracker.example/mcp/"
    assert server.token == Secret("canary-token")
    assert server.headers == (("X-Team", Secret("canary-in-header")),)


def test_no_secret_of_a_server_is_shown_and_the_log_knows_them_all(machine: Machine) -> None:
    config = machine.load(
        PROGRAM + ADDRESS, FILES_TOKEN="canary-passed", REGION="north", TRACKER_TOKEN="canary-token"
    )

    known = secrets_of(config)
    assert set(known) == {"canary-in-env", "canary-passed", "canary-in-header", "canary-token"}
    shown = f"{config!r}{describe(config)}{config.warnings}{config.sources}"
    assert "canary" not in shown
    rows = {key: value for key, value, _ in describe(config)}
    assert rows["mcp.files.env"] == '["LEVEL = ***", "API_KEY = ***"]'
    assert rows["mcp.tracker.headers"] == '["X-Team = ***"]'
    assert rows["mcp.tracker.token"] == "***"


def test_secrets_in_the_file_and_on_the_wire_are_warned_about(machine: Machine) -> None:
    text = PROGRAM + ADDRESS.replace("https", "http")

    sentences = machine.load(text, FILES_TOKEN="x", REGION="y", TRACKER_TOKEN="token").warnings

    assert [sentence.split()[0] for sentence in sentences] == [
        "mcp.files.env", "mcp.tracker.headers", "mcp.tracker.url",
    ]  # fmt: skip
    assert "use env_vars instead" in sentences[0]


def test_a_server_can_come_from_variables_alone(machine: Machine) -> None:
    (server,) = machine.load(
        None,
        KOBOSHI__MCP__FILES__COMMAND="/usr/bin/files",
        KOBOSHI__MCP__FILES__ARGS='["a, b", "c"]',
        KOBOSHI__MCP__FILES__TOOLS="read, write",
        KOBOSHI__MCP__FILES__ENV='{"A": "b"}',
    ).mcp

    assert (server.command, server.args) == ("/usr/bin/files", ("a, b", "c"))
    assert (server.tools, server.env) == (("read", "write"), (("A", Secret("b")),))


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("[mcp.x]", "line 1: mcp.x needs a command to start, or a url to call"),
        ('[mcp.x]\ncommand = "a"\nurl = "http://b"',
         "line 3: mcp.x has command and url; use only one"),
        ('[mcp.x]\ncomand = "a"', 'line 2: unknown key "mcp.x.comand"; '
         'did you mean "mcp.x.command"?'),
        ('[mpc.x]\ncommand = "a"', 'line 1: unknown key "mpc"; did you mean "mcp"?'),
        ('[mcp]\ncommand = "a"', "line 2: mcp.command belongs to no server; "
         "write it below [mcp.github]"),
        ('[mcp.X]\ncommand = "a"', 'line 1: "X" cannot name a server'),
        ("mcp = 5", "line 1: mcp must be a table, not a whole number"),
        ('[mcp.x]\ncommand = "./a"', 'line 2: mcp.x.command must be a name on the PATH or a full '
         'path, not "./a"'),
        ('[mcp.x]\ncommand = " a"', "mcp.x.command must be a program in one line"),
        ('[mcp.x]\ncommand = "a"\nargs = "-y"', "line 3: mcp.x.args must be a list of texts, "
         'as in ["one", "two"], not a text'),
        ('[mcp.x]\ncommand = "a"\nargs = [1]', "args must be a text in quotes, not a whole number"),
        ('[mcp.x]\ncommand = "a"\nargs = ["\\u0000"]', "mcp.x.args must not hold a NUL"),
        ('[mcp.x]\ncommand = "a"\nenv = ["A=b"]', "mcp.x.env must be a table, as in "
         '{ NAME = "value" }, not a list'),
        ('[mcp.x]\ncommand = "a"\nenv = { A = 1 }', 'as values, and "A" is a whole'),
        ('[mcp.x]\ncommand = "a"\nenv = { "A-B" = "c" }', '"A-B" cannot name an environment'),
        ('[mcp.x]\ncommand = "a"\nenv_vars = ["A=b"]', "must hold names of environment variables"),
        ('[mcp.x]\ncommand = "a"\nenv_vars = ["NOT_SET"]', "line 3: mcp.x.env_vars: the "
         "environment variable NOT_SET is not set; set NOT_SET, or take it out of the list"),
        ('[mcp.x]\ncommand = "a"\nenv_vars = ["HOME"]\nenv = { HOME = "b" }',
         "line 3: mcp.x has a variable in env and in env_vars; use only one of them"),
        ('[mcp.x]\ncommand = "a"\nheaders = { A = "b" }',
         "line 3: mcp.x.headers is for servers with a url"),
        ('[mcp.x]\ncommand = "a"\ntoken_env = "HOME"',
         "line 3: mcp.x.token_env is for servers with a url"),
        ('[mcp.x]\nurl = "http://b"\nargs = ["-y"]',
         "line 3: mcp.x.args is for servers with a command"),
        ('[mcp.x]\nurl = "ws://b"', "line 2: mcp.x.url must be an address that begins with"),
        ('[mcp.x]\nurl = "http://b"\nheaders = { "A B" = "c" }', '"A B" cannot name a header'),
        ('[mcp.x]\nurl = "http://b"\nheaders = { Host = "c" }', "is a header of the protocol"),
        ('[mcp.x]\nurl = "http://b"\nheaders = { A = "b\\nC: d" }', "must have values in one line"),
        ('[mcp.x]\nurl = "http://b"\ntoken_env = "HOME"\nheaders = { authorization = "c" }',
         "line 4: mcp.x has a token and a header Authorization; use only one"),
        ('[mcp.x]\nurl = "http://b"\ntoken_env = "NOT_SET"',
         "line 3: mcp.x.token_env: the environment variable NOT_SET is not set"),
        ('[mcp.x]\nurl = "http://b"\ntoken_env = "A"\ntoken_file = "b"', "only one of them"),
        ('[mcp.x]\ncommand = "a"\ntools = []', "line 3: mcp.x.tools must not be empty; leave"),
        ('[mcp.x]\ncommand = "a"\ntools = [""]', "mcp.x.tools must hold names in one line each"),
        ('[mcp.x]\ncommand = "a"\ntimeout_seconds = 0', "timeout_seconds must be a number from 1"),
        ('[mcp.x]\ncommand = "a"\ntrust_hints = "yes"', "trust_hints must be true or false"),
        ('[mcp.x]\ncommand = "a"\napproval = "alway"', 'did you mean "always"?'),
        ('[mcp.a-b]\ncommand = "a"\n[mcp.a_b]\ncommand = "a"',
         "line 3: mcp.a_b and mcp.a-b would give their tools the same names"),
    ],
)  # fmt: skip
def test_a_mistake_about_a_server_is_named_with_its_key_and_line(
    machine: Machine, text: str, complaint: str
) -> None:
    complaints = machine.complaints(text)

    assert len(complaints) == 1
    assert complaints[0].startswith("koboshi.toml line ")
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    "line",
    ['env_vars = ["A=canary"]', 'env = { A = ["canary"] }', 'env = { A = "canary\\u0000" }'],
)
def test_no_secret_of_a_server_is_in_a_complaint(machine: Machine, line: str) -> None:
    complaints = machine.complaints(f'[mcp.x]\ncommand = "a"\n{line}')

    assert "canary" not in "".join(complaints)


def test_what_a_disabled_server_would_need_does_not_matter(machine: Machine) -> None:
    text = '[mcp.x]\nenabled = false\ncommand = "a"\nenv_vars = ["NOT_SET"]'

    config = machine.load(text)

    assert config.enabled_mcp == ()
    assert config.mcp[0].passed == ()


@pytest.mark.parametrize("how", ["token_file", "credential"])
def test_a_token_comes_from_a_private_file_or_from_systemd(machine: Machine, how: str) -> None:
    text = '[mcp.x]\nurl = "https://b.example"\n'
    if how == "token_file":
        machine.secret_file("tracker", "canary")
        config = machine.load(text + 'token_file = "tracker"')
    else:
        machine.secret_file("credentials/mcp_x_token", "canary")
        config = machine.load(text, CREDENTIALS_DIRECTORY=str(machine.home / "credentials"))

    assert config.mcp[0].token == Secret("canary")
