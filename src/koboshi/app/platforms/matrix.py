"""Accounts of Matrix, from the configuration."""

from collections.abc import AsyncIterator
from functools import partial
from importlib.util import find_spec

from koboshi.app.platforms.platform import (
    ChannelSetup,
    InitKey,
    InitQuestions,
    KnownPlatform,
    PlatformFinding,
    ProbeFailed,
)
from koboshi.app.platforms.reaching import PROBE_SECONDS, clock_ahead_s, judged_clock
from koboshi.clock import SystemClock
from koboshi.config import MatrixConfig, PlatformConfig
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel

NO_CRYPTO = "encryption needs a library: pip install 'koboshi[matrix-e2e]'"


def matrix_channel(config: PlatformConfig, setup: ChannelSetup) -> Channel:
    from koboshi.channels.matrix.channel import MatrixChannel
    from koboshi.channels.matrix.options import MatrixOptions

    account = _account(config)
    assert account.token is not None, "a channel that is enabled has its token"
    name = ChannelName(account.name)
    if account.encryption:
        _check_encryption(setup)
    options = MatrixOptions(
        name=name,
        homeserver=account.homeserver,
        user=account.user,
        token=account.token.reveal(),
        ambiguous=account.ambiguous,
        per_second=account.rate_per_second,
        home=setup.home,
        watermarks=setup.watermarks_of(name),
        is_allowed=partial(setup.is_allowed, name),
        message_chars_max=setup.limits.message_chars_max,
        file_bytes_max=setup.limits.file_bytes_max,
        commands=tuple(command for command, _ in setup.commands),
        encryption=account.encryption,
    )
    return MatrixChannel(options, setup.clock, setup.on_back)


def _check_encryption(setup: ChannelSetup) -> None:
    """Raises ChannelUnusable where encrypted rooms cannot be read."""
    if not _has_crypto():
        raise ChannelUnusable(NO_CRYPTO)
    if not setup.keeps_store_in_home:
        raise ChannelUnusable(
            "encryption does not work with PostgreSQL: the keys of a device are a file of one "
            "home, and a gateway elsewhere would not have them; set encryption = false"
        )


def _has_crypto() -> bool:
    return find_spec("nio") is not None and find_spec("vodozemac") is not None


async def try_matrix(config: PlatformConfig) -> str:
    """Whose token it is. Raises ProbeFailed."""
    account = _account(config)
    match await _asked(account, "account/whoami"):
        case {"user_id": str(user)} if user == account.user:
            return f"the account is {user}"
        case {"user_id": str(user)}:
            raise ProbeFailed(f"the token is of {user}, and user is set to {account.user}")
        case _:
            raise ProbeFailed(f"{account.homeserver} does not answer like a Matrix homeserver")


async def examine_matrix(config: PlatformConfig) -> AsyncIterator[PlatformFinding]:
    account = _account(config)
    yield PlatformFinding(severity="ok", words=await try_matrix(account))
    yield judged_clock(await clock_ahead_s(account.homeserver, SystemClock()))
    match await _asked(account, "account/whoami"):
        case {"device_id": str(device)} if device:
            pass
        case _:
            words = "the token has no device, so the homeserver cannot tell repeats by their keys"
            remedy = "use a token of a login; until then each unknown send is looked for first"
            yield PlatformFinding(severity="warning", words=words, remedy=remedy)
    if account.encryption and not _has_crypto():
        yield PlatformFinding(severity="error", words=NO_CRYPTO, remedy="or set encryption = false")
    match await _asked(account, "joined_rooms"):
        case {"joined_rooms": list(rooms)} if rooms:
            yield PlatformFinding(severity="ok", words=f"it is in {len(rooms)} rooms")
        case _:
            words = "it is in no room yet; an allowed person can invite it"
            yield PlatformFinding(severity="note", words=words)


PLATFORM = KnownPlatform(
    build=matrix_channel,
    probe=try_matrix,
    examine=examine_matrix,
    init=InitQuestions(
        title="a Matrix account",
        token_env="MATRIX_ACCESS_TOKEN",
        comment="An account of its own on any homeserver; docs/matrix.md says how to get a token.",
        keys=(
            InitKey(
                name="homeserver",
                question="The address of its homeserver",
                example="https://matrix.example.org",
            ),
            InitKey(name="user", question="Its id", example="@bot:example.org"),
        ),
        person_example="@ann:example.org",
    ),
)


def _account(config: PlatformConfig) -> MatrixConfig:
    assert isinstance(config, MatrixConfig)
    return config


async def _asked(account: MatrixConfig, what: str) -> object:
    """What the homeserver answers. Raises ProbeFailed."""
    import httpx2
    import msgspec

    from koboshi.channels.common.calls import NoAnswer, NotReached
    from koboshi.channels.matrix.client import CLIENT, MatrixApi, MatrixRefused
    from koboshi.http_pool import HttpPool

    assert account.token is not None, "a channel that is enabled has its token"
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(PROBE_SECONDS))
    api = MatrixApi(lanes=lanes, base=account.homeserver, token=account.token.reveal())
    try:
        answer = await api.call("GET", f"{CLIENT}/{what}", seconds=PROBE_SECONDS)
        told: object = msgspec.json.decode(answer)
    except (NotReached, NoAnswer, msgspec.DecodeError) as error:
        said = f"{account.homeserver} was not reached, or did not answer: {error}"
        raise ProbeFailed(said) from error
    except MatrixRefused as refused:
        raise ProbeFailed(f"{account.homeserver} does not take the token: {refused}") from refused
    finally:
        await lanes.aclose()
    return told
