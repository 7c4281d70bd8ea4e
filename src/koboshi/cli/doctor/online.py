"""What `koboshi doctor --online` finds out: one call of each bot's platform and of the model."""

from collections.abc import Iterator

import anyio

from koboshi import logs
from koboshi.app.platforms.platform import PlatformFinding, ProbeFailed
from koboshi.app.platforms.registry import platform_of
from koboshi.app.probe import try_model
from koboshi.cli.doctor.checks import DoctorFinding, Severity
from koboshi.cli.progress_bar import Show
from koboshi.config import Config, ModelConfig, PlatformConfig, secrets_of

REMEDY = (
    "koboshi config show says what is set; is the address right, and can it be reached from here?"
)


def examine_online(config: Config, show: Show) -> Iterator[tuple[str, DoctorFinding]]:
    """Every finding with the name of its check."""
    # On stderr, and only what is wrong: stdout is for the answer.
    logs.configure("error", False, secrets_of(config))
    accounts = [each for each in config.enabled_channels if isinstance(each, PlatformConfig)]
    for number, account in enumerate(accounts):
        show(f"calling {account.name}", number, len(accounts) + 1)
        for found in _account(account):
            yield account.name, found
    show(f"calling {config.model.name}", len(accounts), len(accounts) + 1)
    yield "model", _model(config)


def _account(channel: PlatformConfig) -> Iterator[DoctorFinding]:
    found: list[PlatformFinding] = []

    async def examine() -> None:
        async for each in platform_of(channel.platform).examine(channel):
            found.append(each)

    failure: DoctorFinding | None = None
    try:
        anyio.run(examine)
    except ProbeFailed as error:
        failure = DoctorFinding(severity=Severity.ERROR, words=str(error), remedy=REMEDY)
    for each in found:
        severity = Severity(each.severity)
        yield DoctorFinding(severity=severity, words=each.words, remedy=each.remedy)
    if failure is not None:
        yield failure


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
            return f"the key is wrong or has expired: put a good one into {place}"
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
            return "the provider refused the request, and says why; is it the right model?"
        case _:
            return REMEDY


def _ok(words: str) -> DoctorFinding:
    return DoctorFinding(severity=Severity.OK, words=words)
