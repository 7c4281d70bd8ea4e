"""What `koboshi doctor --online` finds out: one call of each bot's platform and of the model."""

from collections.abc import Iterator

import anyio

from koboshi import logs
from koboshi.app.trying import (
    Disappointed,
    WebhookStanding,
    clock_ahead_s,
    try_model,
    try_telegram,
    webhook_standing,
)
from koboshi.cli.doctor_checks import Finding, Severity
from koboshi.cli.progress_bar import Show
from koboshi.config import Config, TelegramConfig, secrets_of
from koboshi.domain.durations import duration
from koboshi.runtime.clock import SystemClock

AHEAD_S_MAX = 60
FORBIDDEN = 403
"""What our webhook answers to whoever does not know its secret."""
REMEDY = "koboshi config show says what is set; is the key the right one, and the address?"


def examine_online(config: Config, show: Show) -> Iterator[tuple[str, Finding]]:
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


def _bot(bot: TelegramConfig) -> Iterator[Finding]:
    try:
        yield _ok(f"the bot is @{anyio.run(try_telegram, bot)}")
        yield judged_clock(anyio.run(clock_ahead_s, bot.api_base, SystemClock()))
        if bot.webhook_url:
            standing = anyio.run(webhook_standing, bot)
            yield from judged_webhook(bot.webhook_url, standing)
    except Disappointed as error:
        yield Finding(severity=Severity.ERROR, words=str(error), remedy=REMEDY)


def judged_clock(ahead_s: float | None) -> Finding:
    """Our clock beside the platform's."""
    if ahead_s is None:
        return Finding(severity=Severity.NOTE, words="the platform does not say what time it is")
    words = f"our clock is {duration(int(abs(ahead_s) * 1000))} "
    words += "ahead of the platform's" if ahead_s > 0 else "behind the platform's"
    if abs(ahead_s) <= AHEAD_S_MAX:
        return _ok(words)
    remedy = "set the clock, and let it be kept: timedatectl set-ntp true"
    return Finding(severity=Severity.WARNING, words=words, remedy=remedy)


def judged_webhook(url: str, standing: WebhookStanding) -> Iterator[Finding]:
    """Whether Telegram calls us, can, and is answered by us."""
    if standing.registered != url:
        whom = standing.registered or "nobody"
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


def _model(config: Config) -> Finding:
    try:
        return _ok(f"{config.model.name} says: {anyio.run(try_model, config)}")
    except Disappointed as error:
        return Finding(severity=Severity.ERROR, words=str(error), remedy=REMEDY)


def _ok(words: str) -> Finding:
    return Finding(severity=Severity.OK, words=words)


def _warning(words: str, remedy: str) -> Finding:
    return Finding(severity=Severity.WARNING, words=words, remedy=remedy)
