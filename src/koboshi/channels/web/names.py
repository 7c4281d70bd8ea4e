"""By which names the web channel answers: those of this machine, and the one that was stated for a
proxy in front of it."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""What listens on all addresses, and how this machine calls it."""
_SCHEMES = ("http", "https")
"""The second is what a page says that came through a proxy which keeps our own name."""
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What may stand in a `Host` header, and what an `Origin` must then be."""

    host: str = "127.0.0.1"
    """What is listened on."""
    public_url: str = ""
    """Where people reach us through a proxy; empty if there is none."""

    @property
    def local_host(self) -> str:
        """The host of an address by which this machine reaches us."""
        return _EVERYWHERE.get(self.host) or _in_brackets(self.host)

    @property
    def words(self) -> str:
        """The names, for the refusal of a request that used another."""
        names = [*_LOOPBACK, *([_public_host(self.public_url)] if self.public_url else [])]
        return f"{', '.join(names[:-1])} and {names[-1]}"

    def origins_of(self, host: str) -> frozenset[str]:
        """What a page of ours says where it is from, if `host` is a name of ours; else nothing."""
        host = host.lower()
        if self._is_public(host):
            scheme = urlsplit(self.public_url.lower()).scheme
            return frozenset({f"{scheme}://{_public_host(self.public_url)}"})
        name, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):
            name, port = host, "0"
        is_port = port.isascii() and port.isdigit() and len(port) <= 5
        is_ours = is_port and name in (*_LOOPBACK, *self._own_name())
        return frozenset(f"{scheme}://{host}" for scheme in _SCHEMES) if is_ours else frozenset()

    def needs_tls(self, host: str) -> bool:
        """Whether a browser that came by this name came over TLS, and a cookie must stay there."""
        return self._is_public(host.lower()) and self.public_url.lower().startswith("https:")

    def _own_name(self) -> tuple[str, ...]:
        """The address that is listened on, where it can only mean this machine."""
        try:
            return (_in_brackets(self.host.lower()),) if ip_address(self.host).is_loopback else ()
        except ValueError:
            return ()

    def _is_public(self, host: str) -> bool:
        """Whether it is the public name, with or without a port that goes without saying."""
        if not self.public_url:
            return False
        public = _public_host(self.public_url)
        usual = _USUAL_PORTS[urlsplit(self.public_url.lower()).scheme]
        return host.removesuffix(f":{usual}") == public


def _public_host(url: str) -> str:
    """The name in an address, with its port unless that goes without saying."""
    parts = urlsplit(url.lower())
    name = _in_brackets(parts.hostname or "")
    return name if parts.port in (None, _USUAL_PORTS[parts.scheme]) else f"{name}:{parts.port}"


def _in_brackets(host: str) -> str:
    """A host as it stands before a port: some have colons of their own."""
    return f"[{host}]" if ":" in host else host
