"""The home of OpenClaw, `~/.openclaw`: openclaw.json, state/openclaw.sqlite, the workspace."""

import re
from collections.abc import Mapping
from pathlib import Path

import apsw

from koboshi.app.moving_in.found import (
    FoundChannel,
    NotMovable,
    OtherHome,
    is_alive,
    json_of,
    list_in,
    model_of,
    read_text,
    table_in,
    text_in,
)
from koboshi.app.moving_in.hermes import PROMPT_CHARS_MAX, add_schedule, yaml_of
from koboshi.app.moving_in.talks import copied, take_openclaw_talks
from koboshi.domain.schedule import ScheduleKind

SOURCE = "openclaw"
STATE = "openclaw.sqlite"
_SECRETS = {
    "telegram": {"token": "botToken"},
    "discord": {"token": "token"},
    "slack": {"token": "botToken", "app_token": "appToken"},
    "matrix": {"token": "accessToken"},
}
_LEASES = "state_leases"
_TABLES = {
    _LEASES: ("scope", "payload_json"),
    "config_machine_state": ("state_key", "value_json"),
    "channel_pairing_allow_entries": ("channel_key", "entry"),
    "cron_jobs": ("job_id", "job_json"),
}

_BESIDE_STRINGS = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/|\t|:""", re.DOTALL
)

Rows = Mapping[str, tuple[tuple[str, str], ...]]


def read_openclaw(folder: Path) -> OtherHome:
    """Raises NotMovable where its gateway runs, or a file cannot be read."""
    if not (folder / "openclaw.json").exists():
        raise NotMovable(f"{folder} is no home of OpenClaw: openclaw.json is missing")
    tree, rows = _config(folder / "openclaw.json"), _rows(folder / "state")
    _refuse_running(folder, rows)
    found = OtherHome(source=SOURCE, folder=folder)
    for platform, table in table_in(tree, "channels").items():
        _take_channel(found, platform, table)
    for channel, person in rows["channel_pairing_allow_entries"]:
        found.let_in(channel, person)
    _take_model(found, tree, rows)
    found.take_servers(table_in(tree, "mcp", "servers"))
    named = text_in(tree, "agents", "defaults", "workspace")
    work = Path(named).expanduser() if named else folder / "workspace"
    found.take_memory(work)
    if (work / "memory").is_dir():
        found.leave(str(work / "memory"), "notes of single days are not moved; they stay there")
    found.take_skills(work / "skills")
    found.take_skills(folder / "skills")
    found.prompt = read_text(work / "SOUL.md").strip()[:PROMPT_CHARS_MAX]
    for key, job in rows["cron_jobs"]:
        try:
            _take_job(found, json_of(job, "its row"))
        except NotMovable as error:
            found.leave(f"schedule {key}", str(error))
    if (work / "AGENTS.md").exists():
        found.leave("AGENTS.md", f"copy {work / 'AGENTS.md'} into the work folder if you want it")
    take_openclaw_talks(found)
    found.leave_talks()
    return found


def _config(file: Path) -> object:
    """JSON5, as people write it: with comments, and keys without quotes. Without the comments it is
    YAML, where a colon has a space behind it and there are no tabs."""
    words = read_text(file)
    try:
        return json_of(words, str(file))
    except NotMovable:
        said = _BESIDE_STRINGS.sub(_as_yaml, words)
        found = yaml_of(said, f"{file} is not JSON")
        if not isinstance(found, Mapping):
            raise NotMovable(f"{file} is not JSON") from None
        return found


def _as_yaml(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    return ": " if found[0] == ":" else " "


def _rows(folder: Path) -> Rows:
    """What we read of its database, from a copy."""
    found: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(_TABLES, ())
    if not (folder / STATE).exists():
        return found
    try:
        with copied(folder / STATE) as connection:
            there = {str(row[1]) for row in connection.pragma("table_list") or ()}
            for table, (first, second) in _TABLES.items():
                if table in there:
                    asked = connection.execute(f"SELECT {first}, {second} FROM {table}")
                    found[table] = tuple((str(a), str(b)) for a, b in asked)
    except apsw.Error as error:
        raise NotMovable(f"{folder / STATE} cannot be read: {error}") from error
    return found


def _refuse_running(folder: Path, rows: Rows) -> None:
    """By the pid of the gateway that holds its state."""
    for scope, payload in rows[_LEASES]:
        owner = table_in(_known(payload), "owner")
        if scope == "gateway-owner" and is_alive(owner.get("pid"), SOURCE):
            words = f"the gateway of OpenClaw runs in {folder} (pid {owner.get('pid')})"
            raise NotMovable(f"{words}; stop it first: openclaw gateway stop")


def _known(stored: str) -> object:
    """What a row says; nonsense says nothing."""
    try:
        return json_of(stored, "a row")
    except NotMovable:
        return {}


def _take_channel(found: OtherHome, platform: str, table: object) -> None:
    if platform not in _SECRETS:
        found.leave(platform, "there is no such channel here")
        return
    accounts = table_in(table, "accounts")
    first = table_in(next(iter(accounts.values()), {}))
    secrets = {
        ours: text_in(table, theirs) or text_in(first, theirs)
        for ours, theirs in _SECRETS[platform].items()
    }
    keys = {"homeserver": text_in(table, "homeserver"), "user": text_in(table, "userId")}
    keys = keys if platform == "matrix" else {}
    if not all(secrets.values()) or not all(keys.values()):
        found.leave(platform, "its token is not in openclaw.json; name it in koboshi.toml yourself")
        return
    if len(accounts) > 1:
        found.leave(f"{platform}: {len(accounts) - 1} more accounts", "add them to koboshi.toml")
    found.channels.append(FoundChannel(platform=platform, secrets=secrets, keys=keys))
    for person in (*list_in(table, "allowFrom"), *list_in(first, "allowFrom")):
        if person == "*":
            found.leave(f"{platform} *", "letting everyone in is yours to decide again")
        else:
            found.let_in(platform, person)


def _take_model(found: OtherHome, tree: object, rows: Rows) -> None:
    stored = table_in(tree, "agents", "defaults").get("model")
    primary = stored if isinstance(stored, str) else text_in(stored, "primary")
    provider, _, name = primary.partition("/")
    custom = table_in(tree, "models", "providers", provider)
    base_url, key_env = text_in(custom, "baseUrl"), f"{provider.upper().replace('-', '_')}_API_KEY"
    found.model = model_of(provider, name, base_url, key_env) if name else None
    if found.model is None:
        if primary:
            found.leave(f"model {primary}", "set [model] yourself")
        return
    stored_state = dict(rows["config_machine_state"])
    store = _known(stored_state.get("authProfiles.store", ""))
    keys = [text_in(custom, "apiKey")]
    for profile in table_in(store, "profiles").values():
        if text_in(profile, "provider") == provider and text_in(profile, "type") == "api_key":
            keys.append(text_in(profile, "key"))
    key = next(filter(None, keys), "")
    if key and found.model.key_env:
        found.variables[found.model.key_env] = key
    elif found.model.key_env:
        found.leave(found.model.key_env, "put the key into the environment of the gateway")


def _take_job(found: OtherHome, job: object) -> None:
    name, payload = text_in(job, "name"), table_in(job, "payload")
    if text_in(job, "declarationKey"):
        return  # a chore of the other gateway itself
    if payload.get("kind") != "agentTurn":
        found.leave(f"schedule {name}", "it runs a command; order it anew")
        return
    match table_in(job, "schedule"):
        case {"kind": "cron", "expr": str(expression)}:
            kind = ScheduleKind.CRON
        case {"kind": "every", "everyMs": int(every)}:
            kind, expression = ScheduleKind.EVERY, str(max(1, every // 1000))
        case {"kind": "at", "at": str(expression)}:
            kind, expression = ScheduleKind.AT, expression.replace(".000Z", "Z")
        case _:
            found.leave(f"schedule {name}", "its times are of another kind")
            return
    delivery, prompt = table_in(job, "delivery"), text_in(payload, "message")
    platform, chat = text_in(delivery, "channel"), text_in(delivery, "to")
    add_schedule(found, text_in(job, "id"), name, prompt, kind, expression, platform, chat)
