"""Which addresses a page may be fetched from: those of the public Internet. Pure."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE = IPv6Network("::/96")
# Special ranges that the library of some Python versions does not know yet.
_SPECIAL_V4 = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
_SPECIAL_V6 = tuple(map(IPv6Network, ("64:ff9b:1::/48", "2001::/23", "3fff::/20", "5f00::/16")))


def is_public(address: str) -> bool:
    """Whether this is one address of the public Internet, whatever it is wrapped in. An IPv6
    address that carries an IPv4 address leads to that one, so that one counts."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _is_public_v4(found)
    if found.scope_id is not None:
        return False
    carried = _carried(found)
    if carried is not None:
        return _is_public_v4(carried)
    is_plain = found.is_global and not found.is_multicast and not found.is_site_local
    is_special = found.is_reserved or any(found in network for network in _SPECIAL_V6)
    return is_plain and not is_special


def _is_public_v4(address: IPv4Address) -> bool:
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified
    is_known = any(address in network for network in _SPECIAL_V4)
    return address.is_global and not is_special and not is_known


def _carried(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv6 address; None if there is none."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _IPV4_COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
