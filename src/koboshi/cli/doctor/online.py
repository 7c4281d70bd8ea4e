"""What `koboshi doctor --online` finds out: one call of each bot's platform and of the model."""

from collections.abc import Iterator

import anyio

from koboshi import logs
from koboshi.app.probe import (
    ProbeFailed,
    WebhookStanding,
    clock_ahead_s,
    hears_groups,
    try_model,
    try_telegram,
    webhook_standing,
)
from koboshi.cli.doctor.checks import DoctorFinding, Severity
from koboshi.cli.progress_bar import Show
from koboshi.clock import SystemClock
from koboshi.config import Config, ModelConfig, TelegramConfig, secrets_of
from koboshi.domain.durations import duration

AHEAD_S_MAX = 60
DEAF = (
    'groups = "all" is set, and Telegram brings the bot only what is said to it, except where it '
    "is an administrator"
)
FORBIDDEN = 403
"""What our webhook answers to a call without its secret."""
REMEDY = (
    "koboshi config show says what is set; is the address right, and can it be reached from here?"
)


def examine_online(config: Config, show: Show) -> Iterator[tuple[str, DoctorFinding]]:
    """Every finding with the name of its check."""
    # On stderr, and only what is wrong: stdout is for the answer.
    logs.configure("error", False, secrets_of(config))
    bots = [bot for bot in config.enabled_channels if isinstance(bot, TelegramConfig)]
    for number, bot in enumerate(bots):
        show(f"calling {bot.name}", number, len(bots) + 1)
        for found in _bot(bot):
            yield bot.name, found
    show(f"calling {config.model.name}", len(bots), len(bots) + 1)
    yield "model", _model(config)


def _bot(bot: TelegramConfig) -> Iterator[DoctorFinding]:
    try:
        yield _ok(f"the bot is @{anyio.run(try_telegram, bot)}")
        yield judged_clock(anyio.run(clock_ahead_s, bot.api_base, SystemClock()))
        if bot.groups == "all" and not anyio.run(hears_groups, bot):
            yield _warning(DEAF, "switch privacy mode off: /setprivacy at BotFather")
        if bot.webhook_url:
            standing = anyio.run(webhook_standing, bot)
            yield from judged_webhook(bot.webhook_url, standing)
    except ProbeFailed as error:
        yield DoctorFinding(severity=Severity.ERROR, words=str(error), remedy=REMEDY)


def judged_clock(ahead_s: float | None) -> DoctorFinding:
    """Our clock beside the platform's."""
    if ahead_s is None:
        return DoctorFinding(
            severity=Severity.NOTE, words="the platform does not say what time it is"
        )
    words = f"our clock is {duration(int(abs(ahead_s) * 1000))} "
    words += "ahead of the platform's" if ahead_s > 0 else "behind the platform's"
    if abs(ahead_s) <= AHEAD_S_MAX:
        return _ok(words)
    remedy = "set the clock, and let it be kept: timedatectl set-ntp true"
    return DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy)


def judged_webhook(url: str, standing: WebhookStanding) -> Iterator[DoctorFinding]:
    """Whether Telegram calls us, can, and is answered by us."""
    if standing.registered != url:
        whom = standing.registered or "no address"
        words = f"Telegram calls {whom}, and {url} is configured"
        yield _warning(words, "a gateway registers its address at its start: koboshi run")
    if standing.error:
        words = f"Telegram could not call {url} lately: {standing.error}"
        yield _warning(words, "the address has to be reachable from outside, with a certificate")
    if standing.answered is None:
        words = f"{url} was not reached from here: {standing.why}"
        yield _warning(words, "does the proxy run, and does it pass calls on to the gateway?")
    elif standing.answered != FORBIDDEN:
        words = f"{url} was answered with {standing.answered}, not as the gateway does"
        yield _warning(words, "the proxy has to pass this address on to webhook_host:webhook_port")
    elif not standing.error and standing.registered == url:
        yield _ok(f"{url} is ours, and Telegram calls it")


def _model(config: Config) -> DoctorFinding:
    try:
        return _ok(f"{config.model.name} says: {anyio.run(try_model, config)}")
    except ProbeFailed as error:
        remedy = remedy_for_model(error.status, config.model)
        return DoctorFinding(severity=Severity.ERROR, words=str(error), remedy=remedy)


def remedy_for_model(status: int | None, model: ModelConfig) -> str:
    """What helps against this answer of the provider."""
    place = f"the variable {model.api_key_env}" if model.api_key_env else "model.api_key_env"
    match status:
        case 401:
            return f"the key is wrong or has ended: put a good one into {place}"
        case 402:
            return "the account has no credit: add some at the provider"
        case 403:
            return (
                f"the key has no permission for {model.name}: allow it at the provider, or set "
                "another model.name"
            )
        case 404:
            address = ", and whether base_url ends as the provider says" if model.base_url else ""
            return f"see whether model.name ({model.name}) is spelled as the provider does{address}"
        case 408 | 409 | 425:
            return "this passes: try again in a minute"
        case 429:
            return (
                "the quota or the rate of the key is used up: wait, or raise the limit or add "
                "credit at the provider"
            )
        case int() if status >= 500:
            return (
                "the provider is down or overloaded, and nothing is to be changed here: see its "
                "status page and try again; messages are kept meanwhile"
            )
        case int() if status >= 400:
            return (
                "the provider does not like the request: its words say why; is it the right model?"
            )
        case _:
            return REMEDY


def _ok(words: str) -> DoctorFinding:
    return DoctorFinding(severity=Severity.OK, words=words)


def _warning(words: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy)
