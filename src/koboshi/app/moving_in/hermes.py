"""The home of Hermes, `~/.hermes`: config.yaml, .env, pairing, cron/jobs.json, memories, skills."""

import fcntl
import os
from pathlib import Path

from koboshi.app.moving_in.found import (
    FoundChannel,
    NotMovable,
    OtherHome,
    is_alive,
    list_in,
    model_of,
    read_json,
    read_text,
    table_in,
    text_in,
    unused,
)
from koboshi.app.moving_in.talks import take_hermes_talks
from koboshi.domain.ids import ChannelName
from koboshi.domain.incoming import IncomingSchedule
from koboshi.domain.phrases import excerpt
from koboshi.domain.schedule import NAME_CHARS_MAX, Order, ScheduleKind, default_late

SOURCE = "hermes"
YAML_MISSING = "its configuration needs a library: pip install 'koboshi[moving]'"
PROMPT_CHARS_MAX = 60_000
_CHANNELS = {
    "telegram": {"token": "TELEGRAM_BOT_TOKEN"},
    "discord": {"token": "DISCORD_BOT_TOKEN"},
    "slack": {"token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"},
    "matrix": {"token": "MATRIX_ACCESS_TOKEN"},
}
_NOT_HERE = ("WHATSAPP", "SIGNAL", "EMAIL", "SMS", "MATTERMOST", "DINGTALK", "FEISHU")


def read_hermes(folder: Path) -> OtherHome:
    """Raises NotMovable where its gateway runs, or a file cannot be read."""
    if not (folder / "config.yaml").exists() and not (folder / ".env").exists():
        raise NotMovable(f"{folder} is no home of Hermes: config.yaml and .env are missing")
    _refuse_running(folder)
    found = OtherHome(source=SOURCE, folder=folder)
    tree, variables = _yaml(folder / "config.yaml"), _variables(folder / ".env")
    _take_channels(found, tree, variables)
    _take_people(found, tree, variables)
    _take_model(found, tree, variables)
    found.take_servers(table_in(tree, "mcp_servers"))
    found.take_memory(folder / "memories")
    found.take_skills(folder / "skills")
    found.prompt = read_text(folder / "SOUL.md").strip()[:PROMPT_CHARS_MAX]
    for job in list_in(read_json(folder / "cron" / "jobs.json"), "jobs"):
        _take_job(found, job)
    take_hermes_talks(found)
    found.leave_talks()
    return found


def _refuse_running(folder: Path) -> None:
    """By the lock that its gateway holds for life, or its pid."""
    words = f"the gateway of Hermes runs in {folder}; stop it first: hermes gateway stop"
    try:
        lock = os.open(folder / "gateway.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        lock = -1
    if lock >= 0:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotMovable(words) from None
        finally:
            os.close(lock)
    if is_alive(_pid_in(folder / "gateway.pid"), SOURCE):
        raise NotMovable(words)


def _pid_in(file: Path) -> object:
    """A number, or a table with one. What is nonsense names no process."""
    try:
        found = read_json(file)
    except NotMovable:
        return None
    return found if isinstance(found, int) else table_in(found).get("pid")


def _yaml(file: Path) -> object:
    words = read_text(file)
    return yaml_of(words, f"{file} is not YAML") if words else {}


def yaml_of(words: str, otherwise: str) -> object:
    """Raises NotMovable."""
    try:
        import yaml
    except ImportError as error:
        raise NotMovable(YAML_MISSING) from error
    try:
        return yaml.safe_load(words)
    # A date or a number that is none is a ValueError of its own.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotMovable(f"{otherwise}: {error}") from error


def _variables(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in read_text(file).splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        value = value.strip()
        if equals and not name.startswith("#"):
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[name.strip()] = value[1:-1] if is_quoted else value
    return found


def _setting(tree: object, variables: dict[str, str], name: str) -> str:
    """A variable of theirs; `hermes config set` writes some into config.yaml."""
    stored = table_in(tree).get(name)
    return variables.get(name) or ("" if stored is None else str(stored))


def _take_channels(found: OtherHome, tree: object, variables: dict[str, str]) -> None:
    for platform, names in _CHANNELS.items():
        secrets = {ours: _setting(tree, variables, theirs) for ours, theirs in names.items()}
        if not secrets["token"]:
            continue
        keys: dict[str, str] = {}
        if platform == "matrix":
            keys["homeserver"] = _setting(tree, variables, "MATRIX_HOMESERVER")
            keys["user"] = _setting(tree, variables, "MATRIX_USER_ID")
        if all(secrets.values()) and all(keys.values()):
            found.channels.append(FoundChannel(platform=platform, secrets=secrets, keys=keys))
        else:
            found.leave(platform, "one of its tokens or its address is missing")
    for prefix in _NOT_HERE:
        if any(name.startswith(f"{prefix}_") for name in variables):
            found.leave(prefix.lower(), "there is no such channel here")


def _take_people(found: OtherHome, tree: object, variables: dict[str, str]) -> None:
    for platform in _CHANNELS:
        listed = _setting(tree, variables, f"{platform.upper()}_ALLOWED_USERS")
        for person in filter(None, (each.strip() for each in listed.split(","))):
            if person == "*":
                found.leave(f"{platform} *", "letting everyone in is yours to decide again")
            else:
                found.let_in(platform, person)
        for place in ("platforms/pairing", "pairing"):
            paired = read_json(found.folder / place / f"{platform}-approved.json")
            for person, told in table_in(paired).items():
                found.let_in(platform, person, text_in(told, "user_name"))
    if _setting(tree, variables, "GATEWAY_ALLOW_ALL_USERS").lower() in ("1", "true", "yes"):
        found.leave("GATEWAY_ALLOW_ALL_USERS", "letting everyone in is yours to decide again")


def _take_model(found: OtherHome, tree: object, variables: dict[str, str]) -> None:
    table = table_in(tree, "model")
    name = text_in(table, "default") or text_in(table, "model") or text_in(tree, "model")
    provider, base_url = text_in(table, "provider"), text_in(table, "base_url")
    key = next((each for each in ("OPENAI_API_KEY",) if base_url and each in variables), "")
    found.model = model_of(provider, name, base_url, key) if name else None
    if found.model is None:
        if name:
            found.leave(f"model {name} of {provider or 'auto'}", "set [model] yourself")
        return
    variable = found.model.key_env
    if variable in variables:
        found.variables[variable] = variables[variable]
    elif variable:
        found.leave(variable, "the key is not in .env; put it into the environment of the gateway")


def _take_job(found: OtherHome, job: object) -> None:
    name = text_in(job, "name") or text_in(job, "id")
    prompt, when = text_in(job, "prompt"), table_in(job, "schedule")
    if text_in(job, "script") or not prompt:
        found.leave(f"schedule {name}", "it runs a script; order it anew")
        return
    platform, _, chat = text_in(job, "deliver").partition(":")
    if platform == "origin":
        origin = table_in(job, "origin")
        platform, chat = str(origin.get("platform", "")), str(origin.get("chat_id", ""))
        if topic := origin.get("thread_id"):
            chat = f"{chat}:{topic}"
    match when:
        case {"kind": "cron", "expr": str(expression)}:
            kind = ScheduleKind.CRON
        case {"kind": "interval", "minutes": int(minutes)}:
            kind, expression = ScheduleKind.EVERY, str(minutes * 60)
        case {"kind": "once", "run_at": str(expression)}:
            kind = ScheduleKind.AT
        case _:
            found.leave(f"schedule {name}", "its times are of another kind")
            return
    add_schedule(found, text_in(job, "id"), name, prompt, kind, expression, platform, chat)


def storable(text: str) -> str:
    """Without halves of letters, which JSON can name and no database takes."""
    return text.encode("utf-8", "replace").decode()


def add_schedule(
    found: OtherHome,
    key: str,
    name: str,
    prompt: str,
    kind: ScheduleKind,
    expression: str,
    platform: str,
    chat: str,
) -> None:
    """A schedule; one whose chat is not known here waits for an owner."""
    key = unused(key, {known for known, _, _ in found.orders})
    name, prompt = storable(name), storable(prompt)
    found.orders.append((key, prompt, expression))
    thread = ""
    if platform == "telegram":  # a chat with topics is written as chat:topic
        chat, _, thread = chat.partition(":")
    is_here = bool(chat) and any(each.platform == platform for each in found.channels)
    people = [each.person for each in found.people if each.channel == f"{platform}:main"]
    order = Order(
        name=excerpt(name, NAME_CHARS_MAX),
        kind=kind,
        expression=expression,
        zone="",
        prompt=prompt,
        late=default_late(kind),
    )
    (found.schedules if is_here else found.homeless).append(
        IncomingSchedule(
            key=key,
            channel=ChannelName(f"{platform}:main"),
            chat=chat,
            thread=thread,
            person=chat if chat in people or not people else people[0],
            order=order,
        )
    )
