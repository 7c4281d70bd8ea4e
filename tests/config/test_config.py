"""What a person writes becomes a Config, or sentences that say what to put right."""

import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from koboshi.config import (
    Config,
    ConfigError,
    Limits,
    Secret,
    TelegramConfig,
    WebConfig,
    describe,
    load,
    prepare_home,
    secrets_of,
)
from tests.harness.machine import TOKEN, Machine

EVERY_KEY = """
[gateway]
busy = "steer"
drain_seconds = 10
progress_seconds = 0
max_turns = 2
workdir = "~/elsewhere"

[model]
name = "openai:some-model"
base_url = "https://models.example/v1/"
api_key_env = "MODEL_KEY"
system_prompt = "be brief"

[recovery]
policy = "ask"
fresh_seconds = 60
attempts = 5
boot_breaker = false

[tools.terminal]
approval = "always"
timeout_seconds = 1.5
notify = "error"

[channels.telegram.main]
enabled = true
token_env = "BOT_TOKEN"
api_base = "http://127.0.0.1:9999/"
allow = [123456789, -5]
ambiguous = "hold"
rate_per_second = 0

[channels.telegram.other]
enabled = false
token_file = "other-token"

[channels.web.main]
enabled = true
token_env = "WEB_TOKEN"
host = "::1"
port = 9000

[store]
url = ""
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def telegram(config: Config) -> TelegramConfig:
    return next(each for each in config.channels if isinstance(each, TelegramConfig))


def web(config: Config) -> WebConfig:
    return next(each for each in config.channels if isinstance(each, WebConfig))


def test_nothing_configured_means_the_printed_defaults_and_a_local_web_chat(
    machine: Machine,
) -> None:
    config = machine.load()

    assert (config.home, config.file, config.warnings) == (machine.home, None, ())
    gateway, recovery, terminal = config.gateway, config.recovery, config.tools.terminal
    assert (gateway.busy, gateway.drain_seconds, gateway.progress_seconds) == ("queue", 45, 180)
    assert (gateway.max_turns, gateway.workdir) == (16, machine.user / "koboshi")
    assert (config.model.name, config.model.base_url) == ("scripted", "")
    assert (config.model.api_key_env, config.model.system_prompt) == ("OPENAI_API_KEY", "")
    assert (recovery.policy, recovery.fresh_seconds) == ("auto", 3600)
    assert (recovery.attempts, recovery.boot_breaker) == (3, True)
    assert (terminal.approval, terminal.timeout_seconds) == ("dangerous", 600)
    assert (terminal.notify, config.store.url) == ("all", "")
    assert config.channels == (WebConfig(name="web:main", host="127.0.0.1", port=8642),)


def test_a_telegram_channel_brings_its_printed_defaults(machine: Machine) -> None:
    channel = telegram(machine.load("[channels.telegram.main]", TELEGRAM_BOT_TOKEN=TOKEN))

    assert channel.name == "telegram:main"
    assert channel.token == Secret(TOKEN)
    assert channel.api_base == "https://api.telegram.org"
    assert (channel.allow, channel.ambiguous, channel.rate_per_second) == ((), "probe", 30)


def test_every_key_is_accepted_and_arrives(machine: Machine) -> None:
    config = machine.load(EVERY_KEY, BOT_TOKEN=TOKEN, WEB_TOKEN="w" * 20, MODEL_KEY="sk-model")

    assert [channel.name for channel in config.channels] == [
        "telegram:main",
        "telegram:other",
        "web:main",
    ]
    assert config.gateway.workdir == machine.user / "elsewhere"
    assert config.model.base_url == "https://models.example/v1"
    assert config.model.api_key == Secret("sk-model")
    assert config.tools.terminal.timeout_seconds == 1.5
    assert telegram(config).allow == (123456789, -5)
    assert telegram(config).api_base == "http://127.0.0.1:9999"
    assert (web(config).host, web(config).port, web(config).token) == (
        "::1",
        9000,
        Secret("w" * 20),
    )
    assert config.channels[1].token is None
    assert config.enabled_channels == (config.channels[0], config.channels[2])
    assert config.warnings == ()
    written = [key for key, _, source in describe(config) if source.startswith("koboshi.toml")]
    assert len(written) == len(re.findall(r"(?m)^\w+ =", EVERY_KEY))


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('[gateway]\n\n\nbussy = "queue"', 'line 4: unknown key "gateway.bussy"; '
         'did you mean "gateway.busy"?'),
        ("[gatway]\nbusy = 1", 'line 1: unknown key "gatway"; did you mean "gateway"?'),
        ("[gateway]\nfresh_seconds = 1", 'line 2: unknown key "gateway.fresh_seconds"; '
         'did you mean "recovery.fresh_seconds"?'),
        ("[store]\nzzzzzz = 1", 'line 2: unknown key "store.zzzzzz"; known here: url'),
        ("[channels.pigeons.main]", 'line 1: unknown key "channels.pigeons"; '
         "known here: telegram"),
        ("[channels.telegram.main]\ntokenfile = 1", 'unknown key '
         '"channels.telegram.main.tokenfile"; did you mean "channels.telegram.main.token_file"?'),
        ('[channels.web]\nport = 1', "line 2: channels.web.port belongs to no account; "
         "write it below [channels.web.main]"),
        ('[channels.web.Main]', 'line 1: "Main" cannot name an account'),
        ("gateway = 5", "line 1: gateway must be a table, not a whole number"),
        ("[[gateway]]", "line 1: gateway must be a table, not a list"),
        ('[gateway]\nbusy = "quue"', "line 2: gateway.busy must be one of queue, steer, interrupt, "
         'not "quue"; did you mean "queue"?'),
        ("[gateway]\nmax_turns = true", "must be a whole number from 1 to 1000, not true"),
        ("[gateway]\nmax_turns = 0", "max_turns must be a whole number from 1 to 1000, not 0"),
        ("[gateway]\nmax_turns = 1.0", "max_turns must be a whole number from 1 to 1000, not 1.0"),
        ("[gateway]\ndrain_seconds = -1", "drain_seconds must be a number from 0"),
        ("[gateway]\ndrain_seconds = nan", "drain_seconds must be a number from 0"),
        ("[gateway]\ndrain_seconds = 1979-05-27", "not a date or time"),
        (f"[gateway]\nmax_turns = 0x{'f' * 9000}", "not a whole number"),
        ("[recovery]\nboot_breaker = 1", "boot_breaker must be true or false, not 1"),
        ("[recovery]\nattempts = 0", "attempts must be a whole number from 1 to 100, not 0"),
        ("[channels.web.main]\nport = 70000", "port must be a whole number from 0 to 65535"),
        ('[channels.web.main]\nhost = "0.0.0.0"', "host must be a loopback address, "
         'not "0.0.0.0"; with a proxy in front, say where people reach it: public_url'),
        ('[channels.web.main]\npublic_url = "http://koboshi.example.org"',
         "public_url must begin with https:// unless it is on loopback"),
        ('[channels.web.main]\npublic_url = "https://koboshi.example.org/chat"',
         "public_url must be an address without a path"),
        ('[channels.web.main]\npublic_url = "https://me@koboshi.example.org"',
         "public_url must be an address without a path"),
        ('[channels.web.main]\nhost = "127.0.0.1.example"', "must be a loopback address"),
        ('[model]\nname = ""', "model.name must be one line of text, not empty"),
        ('[model]\nname = "a\\u001b[2J"', "model.name must be one line of text"),
        ('[model]\nbase_url = "ftp://x"', "must be an address that begins with https://"),
        ('[model]\nbase_url = "http://[x"', "must be an address that begins with https://"),
        ('[store]\nurl = "mysql://x"', "line 2: store.url must be empty or begin with "
         "postgresql://; an empty one means SQLite in the home"),
        ('[gateway]\nworkdir = "a\\u0000b"', "workdir must be a path"),
        ("[channels.telegram.main]\nallow = 5", "allow must be a list of ids"),
        ('[channels.telegram.main]\nallow = ["7"]', "write 7 without quotes"),
        ('[channels.telegram.main]\nallow = ["@me"]', "ids cannot"),
        ("[channels.telegram.main]\nallow = [true]", 'must hold whole numbers or "*", not true'),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_key_and_line(
    machine: Machine, text: str, complaint: str
) -> None:
    complaints = machine.complaints(text, TELEGRAM_BOT_TOKEN=TOKEN)

    assert len(complaints) == 1
    assert complaints[0].startswith("koboshi.toml line ")
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    "text, line",
    [
        ('# busy\n[model]\nsystem_prompt = """\nbusy = 1\n[gateway]\n"""\n[gateway]\nbusy = 1', 8),
        ("[model]\nsystem_prompt = '''\n[gateway]\nbusy=2'''''\n[gateway]\nbusy = 1", 6),
        ('[model]\nname = "a # \\" [gateway]"\n\ngateway.busy = 1\n[gateway]\nbusy = 1', 6),
        ("gateway.max_turns = 1\ngateway . 'busy' = 1", 2),
        ('"gateway"."b\\u0075sy" = 1', 1),
        ("gateway = { max_turns = 1, busy = 1 }", 1),
        ("store = {}\n[model]\n\n[gateway]\nbusy = [{ a = [1] }, { b = 2 }]", 5),
        ("[channels.telegram.x]\nenabled=false\nallow = [ # one\n 1,\n 2 ]\n[gateway]\nbusy=1", 7),
        ("\r\n[ gateway ]\r\nbusy = 1\r\n", 3),
    ],
)
def test_the_line_is_right_however_the_file_is_written(
    machine: Machine, text: str, line: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        machine.load(text)

    busy = [each for each in caught.value.problems if each.key == "gateway.busy"]
    assert [(each.file, each.line) for each in busy] == [(machine.file, line)]


def test_all_problems_are_told_at_once(machine: Machine) -> None:
    text = "[gateway]\nbusy = 1\nmax_turns = 0\n[channels.telegram.main]\n[nonsense]\n"

    complaints = machine.complaints(text, KOBOSHI__STORE__URL="x", KOBOSHI__STORE__URI="x")

    assert len(complaints) == 6


def test_a_flood_of_problems_is_cut_and_says_so(machine: Machine) -> None:
    names = "\n".join(f"unknown{number} = 1" for number in range(5000))

    complaints = machine.complaints(f"[gateway]\n{names}", KOBOSHI__NONSENSE="1")

    assert len(complaints) == 101
    assert complaints[-1] == "there are too many problems to show; fix these first"


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("[gateway]\nbusy = queue", "line 2, column 8: not valid toml: invalid value; texts need"),
        ("[gateway", "line 1, column 9: not valid toml"),
        ("a = 1\na = 2", "line 2, column 6: not valid toml: cannot overwrite a value"),
        (f"a = {'[' * 50_000}", "not valid toml: nested too deep"),
        (f"\n{'a.' * 100_000}a = 1", "line 2: not valid toml for koboshi: a key of more than"),
        (f"a = {'9' * 5_000}", "not valid toml: a value cannot be read"),
        (b"[gateway]\nbusy = '\xff'", "line 2: the configuration file is not valid utf-8"),
        (b"#" * 300_000, "the configuration file is larger than 256000 bytes"),
    ],
)
def test_a_file_that_is_not_toml_is_named_with_the_place(
    machine: Machine, text: str | bytes, complaint: str
) -> None:
    assert complaint in "\n".join(machine.complaints(text))


def test_a_byte_order_mark_is_no_mistake(machine: Machine) -> None:
    assert machine.load(b"\xef\xbb\xbf[gateway]\nmax_turns = 3").gateway.max_turns == 3


def test_a_home_no_one_knows_is_told(machine: Machine) -> None:
    unknown = "~no-such-user-here/x"

    complaint = f"cannot tell where {unknown[:-2]} is"
    assert complaint in machine.complaints(KOBOSHI_HOME=unknown)[0]
    assert complaint in machine.complaints(f'[gateway]\nworkdir = "{unknown}"')[0]


def test_a_folder_in_place_of_the_file_is_told(machine: Machine) -> None:
    machine.file.mkdir()

    assert machine.complaints() == ["koboshi.toml: the configuration file is a folder"]


def test_a_missing_file_is_an_error_only_when_a_person_named_it(machine: Machine) -> None:
    missing = str(machine.user / "other.toml")

    assert machine.load().file is None
    assert f"{missing} does not exist" in machine.complaints(KOBOSHI_CONFIG=missing)[0]
    with pytest.raises(ConfigError, match="does not exist"):
        load(None, Path(missing), machine.environ)
    machine.file.symlink_to(missing)
    assert "does not exist" in machine.complaints()[0]


def test_a_file_no_one_may_read_is_told(machine: Machine) -> None:
    if os.geteuid() == 0:
        machine.file.symlink_to(machine.file)  # root reads everything but a loop
    else:
        machine.file.write_text("")
        machine.file.chmod(0)

    assert "the configuration file cannot be read: " in machine.complaints()[0]


def test_arguments_rule_over_variables_and_variables_over_defaults(machine: Machine) -> None:
    named, argument = machine.user / "named", machine.user / "argument"
    other = machine.user / "other.toml"
    other.write_text("[gateway]\nmax_turns = 7")

    assert machine.load(KOBOSHI_HOME=str(named)).home == named
    assert load(argument, None, machine.environ | {"KOBOSHI_HOME": str(named)}).home == argument
    assert load(Path("~/argument"), None, machine.environ).home == argument
    assert machine.load(KOBOSHI_CONFIG="~/other.toml").gateway.max_turns == 7
    assert load(None, other, machine.environ | {"KOBOSHI_CONFIG": "x"}).file == other


def test_a_variable_rules_over_the_file_and_is_named_as_the_source(machine: Machine) -> None:
    config = machine.load(
        "[recovery]\nfresh_seconds = 5\nattempts = 9",
        KOBOSHI__RECOVERY__FRESH_SECONDS="60",
        KOBOSHI__recovery__Boot_Breaker="False",
        KOBOSHI__CHANNELS__WEB__MAIN__PORT="9000",
        KOBOSHI__TOOLS__TERMINAL__TIMEOUT_SECONDS="0001.5",
    )

    assert (config.recovery.fresh_seconds, config.recovery.boot_breaker) == (60, False)
    assert (web(config).port, config.tools.terminal.timeout_seconds) == (9000, 1.5)
    assert config.sources["recovery.fresh_seconds"] == "KOBOSHI__RECOVERY__FRESH_SECONDS"
    assert config.sources["recovery.attempts"] == "koboshi.toml line 3"
    assert config.sources["recovery.policy"] == "default"


@pytest.mark.parametrize(
    "text, allow",
    [("1, 2,1", (1, 2)), ('["*", 3]', ("*", 3)), ("*", ("*",)), ("", ()), ("[]", ())],
)
def test_a_list_in_a_variable_is_separated_by_commas_or_json(
    machine: Machine, text: str, allow: tuple[int | str, ...]
) -> None:
    variables = {"KOBOSHI__CHANNELS__TELEGRAM__MAIN__ALLOW": text, "TELEGRAM_BOT_TOKEN": TOKEN}

    assert telegram(machine.load(None, **variables)).allow == allow


@pytest.mark.parametrize(
    "variable, value, complaint",
    [
        ("KOBOSHI__RECOVRY__ATTEMPTS", "1", 'unknown key "recovry.attempts"; did you mean '
         '"recovery.attempts" (KOBOSHI__RECOVERY__ATTEMPTS)?'),
        ("KOBOSHI__CHANNELS__WEBB__MAIN__TOKEN", "x", 'did you mean "channels.web.main.token"'),
        ("KOBOSHI__CHANNELS__WEB__MAIN__PROT", "1", 'did you mean "channels.web.main.port"'),
        ("KOBOSHI__GATEWAY", "1", '"gateway" is a section, not a key'),
        ("KOBOSHI__", "1", 'unknown key ""'),
        ("KOBOSHI__GATEWAY__BUSY__X", "1", 'unknown key "gateway.busy.x"'),
        ("KOBOSHI__GATEWAY__MAX_TURNS", "", 'from 1 to 1000, not ""'),
        ("KOBOSHI__GATEWAY__MAX_TURNS", "٣", "must be a whole number"),
        ("KOBOSHI__GATEWAY__BUSY", "\x1b[2J\n", r'not "\x1b[2J\n"'),
        ("KOBOSHI__MODEL__SYSTEM_PROMPT", "\udcff", "must be valid utf-8"),
        ("KOBOSHI__CHANNELS__WEB__MAIN__ENABLED", "yes", "must be true or false"),
    ],
)  # fmt: skip
def test_a_wrong_variable_is_named(
    machine: Machine, variable: str, value: str, complaint: str
) -> None:
    complaints = machine.complaints(None, **{variable: value})

    assert len(complaints) == 1
    assert complaints[0].startswith(f"{variable}: ")
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://koboshi@db1,db2/koboshi?target_session_attrs=read-write",
        "postgresql:///koboshi?host=/run/postgresql",
    ],
)
def test_a_database_of_postgresql_is_a_store(machine: Machine, url: str) -> None:
    assert machine.load(f'[store]\nurl = "{url}"').store.url == url


@pytest.mark.parametrize(
    "url", ["postgresql://me:canary@host/db", "postgres://host/db?password=canary"]
)
def test_a_password_has_no_place_in_an_address(machine: Machine, url: str) -> None:
    (told,) = machine.complaints(f'[store]\nurl = "{url}"')

    assert "store.url must hold no password" in told
    assert "canary" not in told


@pytest.mark.parametrize("url", ["mysql://x", "koboshi.db", " "])
def test_a_store_that_is_not_there_is_refused(machine: Machine, url: str) -> None:
    """Issue 14: any address was accepted and ignored. The message names the key and the remedy, and
    does not repeat the password."""
    refused = (
        "store.url must be empty or begin with postgresql://; an empty one means SQLite in the home"
    )

    assert machine.complaints(f'[store]\nurl = "{url}"') == [f"koboshi.toml line 2: {refused}"]
    machine.file.unlink()
    assert machine.complaints(KOBOSHI__STORE__URL=url) == [f"KOBOSHI__STORE__URL: {refused}"]


def test_two_spellings_of_one_variable_are_a_problem(machine: Machine) -> None:
    variables = {"KOBOSHI__STORE__URL": "", "KOBOSHI__store__url": ""}

    assert "set the same key" in machine.complaints(None, **variables)[0]


@pytest.mark.parametrize("seconds", ["0", "-1", "3600"])
def test_any_sign_is_allowed_for_the_fresh_window_only(machine: Machine, seconds: str) -> None:
    """S47: zero and below mean "always fresh"."""
    config = machine.load(f"[recovery]\nfresh_seconds = {seconds}")

    assert config.recovery.fresh_seconds == int(seconds)


def test_the_web_chat_is_there_until_it_is_switched_off(machine: Machine) -> None:
    bot = "[channels.telegram.main]\n"
    off = f"{bot}[channels.web.main]\nenabled = false"
    other = f"{bot}[channels.web.other]\nport = 1"

    def enabled(text: str) -> list[str]:
        config = machine.load(text, TELEGRAM_BOT_TOKEN=TOKEN)
        return [channel.name for channel in config.enabled_channels]

    assert enabled(bot) == ["telegram:main", "web:main"]
    assert enabled(off) == ["telegram:main"]
    assert enabled(other) == ["telegram:main", "web:other"]
    assert enabled("[channels.web]") == ["web:main"]


def test_two_channels_cannot_share_a_port_or_a_bot(machine: Machine) -> None:
    ports = "[channels.web.a]\n[channels.web.b]"
    bots = "[channels.telegram.a]\n[channels.telegram.b]"

    assert "use the same port 8642" in machine.complaints(ports)[0]
    assert "use the same bot token" in machine.complaints(bots, TELEGRAM_BOT_TOKEN=TOKEN)[0]


def test_a_secret_never_prints_itself() -> None:
    secret = Secret(TOKEN)

    assert f"{secret} {secret!r} {[secret]}" == "Secret(***) Secret(***) [Secret(***)]"
    assert secret.reveal() == TOKEN


def test_no_secret_is_in_what_a_person_is_shown(machine: Machine) -> None:
    text = f'[channels.telegram.main]\ntoken = "{TOKEN}"\n[model]\nname = "openai:x"\n' \
        'base_url = "https://me:pass%40word@host/v1?sslpassword=hidden-too"'  # fmt: skip
    config = machine.load(text, OPENAI_API_KEY="sk-canary")

    known = secrets_of(config)
    assert set(known) == {TOKEN, "sk-canary", "pass%40word", "pass@word", "hidden-too"}
    shown = f"{config!r}{describe(config)}{config.warnings}{config.sources}"
    assert not [secret for secret in known if secret in shown]
    rows = {key: value for key, value, _ in describe(config)}
    assert rows["channels.telegram.main.token"] == rows["model.api_key"] == "***"
    assert rows["model.base_url"] == '"https://me:***@host/v1?sslpassword=***"'


@pytest.mark.parametrize(
    "line",
    [f'token = "{TOKEN}\\n"', f'token_env = "{TOKEN}"', f'api_base = "x{TOKEN}"',
     f'token = ["{TOKEN}"]', f'token = "{TOKEN}"\ntoken_env = "X"'],
)  # fmt: skip
def test_no_secret_is_in_a_complaint(machine: Machine, line: str) -> None:
    complaints = machine.complaints(f"[channels.telegram.main]\n{line}", TELEGRAM_BOT_TOKEN="1:x")

    assert "canary" not in "".join(complaints)


def test_unwise_settings_are_warned_about(machine: Machine) -> None:
    text = f'[channels.telegram.main]\ntoken = "{TOKEN}"\nallow = ["*"]\n' \
        'api_base = "http://far.example"\n[channels.web.main]\ntoken_env = "W"\n' \
        '[model]\nbase_url = "https://me:password@host/v1"'  # fmt: skip
    sentences = machine.load(text, W="short").warnings
    machine.file.chmod(0o644)

    assert [sentence.split()[0] for sentence in sentences] == [
        "channels.telegram.main.token", "model.base_url", "channels.telegram.main.api_base",
        "channels.telegram.main.allow", "channels.web.main",
    ]  # fmt: skip
    assert "koboshi.toml line 2;" in sentences[0]
    assert (
        "line 2, which other users can read"
        in load(None, None, machine.environ | {"W": "short"}).warnings[0]
    )


def test_a_token_comes_from_a_private_file_beside_the_configuration(machine: Machine) -> None:
    machine.secret_file("bot", f"\n{TOKEN}\n")

    config = machine.load('[channels.telegram.main]\ntoken_file = "bot"')

    assert telegram(config).token == Secret(TOKEN)
    assert telegram(config).token_env == ""
    assert config.warnings == ()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_token_file_open_to_others_is_refused(machine: Machine, mode: int) -> None:
    machine.secret_file("bot", mode=mode)

    (complaint,) = machine.complaints('[channels.telegram.main]\ntoken_file = "bot"')

    assert "channels.telegram.main.token_file" in complaint
    assert "is open to other users; run: chmod 600" in complaint


@pytest.mark.parametrize(
    "content", ["", " \n", "two words", "two\nlines", b"\xff\xfe", "x" * 20_000]
)
def test_a_token_file_without_a_token_is_refused(machine: Machine, content: str | bytes) -> None:
    machine.secret_file("bot", content)

    assert len(machine.complaints('[channels.telegram.main]\ntoken_file = "bot"')) == 1


def test_a_token_file_that_is_no_plain_file_is_refused_without_waiting(machine: Machine) -> None:
    os.mkfifo(machine.home / "pipe", 0o600)
    (machine.home / "folder").mkdir(mode=0o700)

    for name in ("pipe", "folder"):
        (complaint,) = machine.complaints(f'[channels.telegram.main]\ntoken_file = "{name}"')
        assert "is not a plain file" in complaint or "is a directory" in complaint


def test_a_missing_token_matters_only_when_the_channel_is_enabled(machine: Machine) -> None:
    text = '[channels.telegram.main]\ntoken_env = "NOT_SET"\n'

    assert machine.complaints(text) == [
        "koboshi.toml line 2: channels.telegram.main.token_env: the environment variable NOT_SET "
        "is not set; set NOT_SET, or use token_file"
    ]
    assert telegram(machine.load(f"{text}enabled = false")).token is None
    assert "needs a token" in machine.complaints('[channels.telegram.main]\ntoken_env = ""')[0]


def test_a_token_has_one_source(machine: Machine) -> None:
    text = '[channels.web.main]\nenabled = false\ntoken_env = "A"\ntoken_file = "b"'

    assert "has token_env and token_file; use only one" in machine.complaints(text)[0]


@pytest.mark.parametrize("name", ["telegram_main_token", "bot"])
def test_a_systemd_credential_is_used_first(machine: Machine, name: str) -> None:
    machine.secret_file(f"credentials/{name}", "9:from-systemd", 0o440)
    folder = str(machine.home / "credentials")

    config = machine.load(
        '[channels.telegram.main]\ntoken_file = "missing/bot"', CREDENTIALS_DIRECTORY=folder
    )

    assert telegram(config).token == Secret("9:from-systemd")
    assert config.sources["channels.telegram.main.token"] == f"credential {name}"


def test_the_model_key_is_looked_up_only_for_models_that_need_one(machine: Machine) -> None:
    assert machine.load(OPENAI_API_KEY="sk-canary").model.api_key is None
    assert machine.load('[model]\nname = "openai:x"').model.api_key is None
    assert machine.complaints(OPENAI_API_KEY="two words") == [
        "the api key in variable OPENAI_API_KEY must be one word of plain ascii characters, "
        "without spaces or line breaks"
    ]
    found = machine.load(OPENAI_API_KEY="sk-canary")
    assert found.model.api_key == Secret("sk-canary")
    assert found.sources["model.api_key"] == "variable OPENAI_API_KEY"


def test_a_new_home_is_private_and_an_open_one_of_ours_is_closed(tmp_path: Path) -> None:
    new, wide = tmp_path / "a" / "new", tmp_path / "wide"
    wide.mkdir()
    wide.chmod(0o755)

    for home in (new, wide):
        prepare_home(home)
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_an_open_home_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        home = tmp_path / "theirs"
        home.mkdir(mode=0o755)
        os.chown(home, 12345, -1)
    else:
        home = Path("/usr")

    with pytest.raises(ConfigError, match="belongs to another user and is open to others"):
        prepare_home(home)


def test_a_home_that_cannot_be_one_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "x")

    for home, words in (
        (file, "is a file, not a folder"),
        (file / "below", "cannot be used: not a directory"),
        (tmp_path / "dangling", "cannot be used"),
        (tmp_path / "nul\0", "cannot be used: .*embedded null"),
        (Path("/dev/null/home"), "cannot be used"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            prepare_home(home)
        assert [problem.key for problem in caught.value.problems] == ["home"]


def test_limits_are_fixed_and_positive(machine: Machine) -> None:
    limits = machine.load().limits

    assert limits == Limits()
    assert min(getattr(limits, each.name) for each in fields(limits)) > 0
    assert machine.complaints("[limits]\npoll_seconds = 1")


def test_how_much_the_model_is_shown_can_be_set(machine: Machine) -> None:
    """Only the person who chose the model knows how much it takes."""
    config = machine.load("[limits]\ncontext_tokens_max = 8000")

    assert config.limits == Limits(context_tokens_max=8_000)
    assert ("limits.context_tokens_max", "8000") in [row[:2] for row in describe(config)]
    assert machine.complaints("[limits]\ncontext_tokens_max = 999")


HOSTILE = st.one_of(
    st.binary(max_size=200),
    st.text(alphabet="[]{}=.,\"'#\n ab1-gatewy", max_size=80).map(str.encode),
    st.tuples(
        st.sampled_from(re.findall(r"(?m)^(?:\w+ =|\[.*\])", EVERY_KEY)),
        st.sampled_from(['""', "-1", "1e999", "[[1]]", "{a={b=1}}", "1979-05-27", "nan", "'*'"]),
    ).map(lambda pair: f"{pair[0]}{pair[1]}".encode()),
)


@given(content=st.lists(HOSTILE, max_size=5).map(b"\n".join), extra=st.text(max_size=20))
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_written_gives_a_config_or_a_config_error(
    machine: Machine, content: bytes, extra: str
) -> None:
    try:
        machine.load(content, **{f"KOBOSHI__{extra}": extra})
        said = "nothing"
    except ConfigError as error:
        said = str(error)

    assert said
    assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "name, variable",
    [
        ("openai:gpt", "OPENAI_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("google:gemini", "GOOGLE_API_KEY"),
    ],
)
def test_a_key_is_never_sent_to_another_provider(tmp_path: Path, name: str, variable: str) -> None:
    environ = {
        "KOBOSHI__MODEL__NAME": name,
        "OPENAI_API_KEY": "key-of-openai",
        "ANTHROPIC_API_KEY": "key-of-anthropic",
        "GOOGLE_API_KEY": "key-of-google",
    }

    model = load(tmp_path, None, environ).model

    assert model.api_key is not None
    assert model.api_key.reveal() == environ[variable]


def test_a_model_of_a_plugin_gets_only_the_key_that_is_named_for_it(tmp_path: Path) -> None:
    environ = {
        "KOBOSHI__MODEL__NAME": "parrot:grey",
        "OPENAI_API_KEY": "key-of-openai",
        "PARROT_KEY": "key-of-parrot",
    }
    named = environ | {"KOBOSHI__MODEL__API_KEY_ENV": "PARROT_KEY"}

    assert load(tmp_path, None, environ).model.api_key is None
    assert load(tmp_path, None, named).model.api_key == Secret("key-of-parrot")


@pytest.mark.parametrize("key", ["journal_days", "deliveries_days"])
def test_what_is_kept_for_less_than_a_week_is_refused(machine: Machine, key: str) -> None:
    """Issue 13, A4: 0 is for ever."""
    for days in (0, 7, 90):
        config = machine.load(f"[retention]\n{key} = {days}")
        assert getattr(config.retention, key) == days
    for days in (1, 6, -1):
        (complaint,) = machine.complaints(f"[retention]\n{key} = {days}")
        wanted = "must be a whole number of days from 7 to 36500, or 0 for ever"
        assert f"retention.{key} {wanted}, not {days}" in complaint
