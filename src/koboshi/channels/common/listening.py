"""Sockets that listen, and why one cannot be had."""

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

from anyio import getaddrinfo, to_thread

from koboshi.channels.common.port_holder import holder_words, holders_of
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.resource_exhaustion import shortage_in

BACKLOG = 2_048
"""Who may wait in the queue of the system; it takes fewer if it likes."""

Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int]


class CannotListen(ChannelUnusable):
    """The address can not be had: choose another, or end whoever holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where somebody wants to listen; where others can reach only if `is_public`."""

    host: str
    port: int
    is_public: bool = False
    remedy: str = ""
    """What helps where it cannot be had."""


def web_place(name: str, host: str, port: int, *, is_public: bool) -> ListenAddress:
    """Where the web channel of that name listens."""
    section = name.replace(":", ".", 1)
    remedy = (
        "end that one, or give us another port: koboshi run --port NUMBER, or port under "
        f"[channels.{section}] in koboshi.toml"
    )
    return ListenAddress(host=host, port=port, is_public=is_public, remedy=remedy)


def webhook_place(host: str, port: int) -> ListenAddress:
    """Where calls of a platform are taken."""
    remedy = "end that one, or set webhook_port to another and tell the proxy"
    return ListenAddress(host=host, port=port, remedy=remedy)


async def listen(place: ListenAddress) -> socket.socket:
    """A socket that listens there. Raises CannotListen, naming it and what helps, and OSError where
    only something is missing for now."""
    try:
        found = await getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return _bound(place, socket.AddressFamily(family), address)
    except OSError as error:
        if shortage_in(error) is not None:
            raise
        words = await to_thread.run_sync(_refusal, place, error)
        raise CannotListen(words) from error


def complaint_about(place: ListenAddress, ours: frozenset[int] = frozenset()) -> str:
    """Why nobody could listen there now; empty if somebody could, or if one of our own processes
    does, which will make room."""
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        _bound(place, family, (str(address[0]), int(address[1]), *address[2:])).close()
    except CannotListen as error:
        return str(error)
    except OSError as error:
        is_held = error.errno == errno.EADDRINUSE
        if is_held and ours and not set(holders_of(place.port)) - ours:
            return ""
        return "" if shortage_in(error) is not None else _refusal(place, error)
    return ""


def _bound(place: ListenAddress, family: socket.AddressFamily, address: Address) -> socket.socket:
    if not place.is_public and not ip_address(address[0]).is_loopback:
        words = f"{place.host} is {address[0]}, which others can reach; use 127.0.0.1"
        raise CannotListen(words)
    listener = socket.create_server(address, family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener


def _refusal(place: ListenAddress, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        words = f"is in use by another program ({holder_words(place.port)})"
    else:
        words = f"can not be used: {error.strerror or error}"
    helps = f"; {place.remedy}" if place.remedy else ""
    return f"{place.host} port {place.port} {words}{helps}"
