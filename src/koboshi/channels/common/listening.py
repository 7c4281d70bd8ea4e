"""Sockets that listen, and why one cannot be had."""

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

from anyio import getaddrinfo, to_thread

from koboshi.channels.common.held_listeners import HeldListeners
from koboshi.channels.common.port_holder import holder_words, holders_of, parents_of
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.resource_exhaustion import shortage_in

BACKLOG = 2_048
"""Who may wait in the queue of the system; it takes fewer if it likes."""

Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int]


class CannotListen(ChannelUnusable):
    """The address cannot be had: choose another, or end the program that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where a server is to listen; other machines may reach it only if `is_public`."""

    host: str
    port: int
    is_public: bool = False
    remedy: str = ""
    """What helps where it cannot be had."""
    name: str = ""
    """By which the socket is handed from one gateway to the next; empty if it is not."""


def web_place(name: str, host: str, port: int, *, is_public: bool) -> ListenAddress:
    """Where the web channel of that name listens."""
    section = name.replace(":", ".", 1)
    remedy = (
        "end that one, or give us another port: koboshi run --port NUMBER, or port under "
        f"[channels.{section}] in koboshi.toml"
    )
    return ListenAddress(host=host, port=port, is_public=is_public, remedy=remedy, name=section)


def webhook_place(host: str, port: int) -> ListenAddress:
    """Where calls of a platform are taken."""
    remedy = "end that one, or set webhook_port to another and tell the proxy"
    return ListenAddress(host=host, port=port, remedy=remedy)


async def listen(place: ListenAddress, held: HeldListeners | None = None) -> socket.socket:
    """A socket that listens there: one that the gateway before this one has left in `held`, or a
    new one, which is kept there. Raises CannotListen, naming it and what helps, and OSError where
    only something is missing for now."""
    try:
        found = await getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        addresses = [(str(each[4][0]), int(each[4][1])) for each in found]
        listener = None if held is None else held.taken(place.name, addresses)
        if listener is None:
            listener = _bound(place, socket.AddressFamily(family), address)
        if held is not None and place.name:
            held.keep(place.name, listener)
        return listener
    except OSError as error:
        if shortage_in(error) is not None:
            raise
        words = await to_thread.run_sync(_refusal, place, error)
        raise CannotListen(words) from error


def complaint_about(place: ListenAddress, ours: frozenset[int] = frozenset()) -> str:
    """Why a server could not listen there now; empty if it could, or if one of our own processes
    does, which will make room."""
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        _bound(place, family, (str(address[0]), int(address[1]), *address[2:])).close()
    except CannotListen as error:
        return str(error)
    except OSError as error:
        is_held = error.errno == errno.EADDRINUSE
        if is_held and ours and not set(holders_of(place.port)) - ours - parents_of(ours):
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
        words = f"cannot be used: {error.strerror or error}"
    helps = f"; {place.remedy}" if place.remedy else ""
    return f"{place.host} port {place.port} {words}{helps}"
