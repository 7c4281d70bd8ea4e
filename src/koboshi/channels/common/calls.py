"""Calls of a platform, with one question answered about each that failed: did it get there?"""

from collections.abc import Awaitable, Callable

import httpx2

from koboshi.domain.resource_exhaustion import shortage_behind
from koboshi.http_pool import HttpPool

_NOT_BEGUN = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
"""Nothing of the request has left us."""


class NotReached(Exception):
    """The call did not get to the platform."""


class NoAnswer(Exception):
    """The call may have got to the platform, and what it made of it is unknown."""


async def answer_to(
    lanes: HttpPool, ask: Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]
) -> httpx2.Response:
    """What a platform answers, unless that is 5xx. Raises NotReached, or NoAnswer if it cannot be
    known what became of the call. No address is told: a token may be in it."""
    try:
        async with lanes.lane() as http:
            response = await ask(http)
    except _NOT_BEGUN as error:
        raise NotReached(type(error).__name__) from shortage_behind(error)
    except httpx2.HTTPError as error:
        raise NoAnswer(type(error).__name__) from shortage_behind(error)
    if response.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
        raise NoAnswer(f"the platform answered {response.status_code}")
    return response
