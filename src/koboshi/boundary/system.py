"""What every program needs of this machine, found by looking at it."""

import os
import stat
from collections.abc import Iterable, Iterator

from koboshi.boundary.view import Access, Place
from koboshi.domain.sandbox import Boundary

FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")

ETC = tuple(
    """
    alternatives bash.bashrc ca-certificates ca-certificates.conf crypto-policies debian_version
    environment fonts gai.conf gitconfig group host.conf hostname hosts inputrc ld.so.cache
    ld.so.conf ld.so.conf.d localtime locale.alias locale.conf locale.gen lsb-release magic
    mime.types nsswitch.conf os-release passwd perl pki profile profile.d protocols python3 rpc
    services shells ssh/ssh_config ssh/ssh_config.d ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo
    timezone
    """.split()
)
"""What programs need of /etc, and nothing that holds a key."""

COPIED_BYTES_MAX = 128_000

# What bubblewrap makes by itself. /dev/shm and terminals of others are not among them.
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


SETTINGS = ("/proc/sys", "/proc/fs", "/proc/scsi", "/proc/acpi")
"""Where the kernel is set up. Root may write there without any special right, and bubblewrap leaves
them as they are: it looks only whether the folder itself can be written."""


def places(boundary: Boundary) -> tuple[Place, ...]:
    """The system, read-only."""
    found = [each for each in FOLDERS if os.path.isdir(each)]
    if boundary is Boundary.BUBBLEWRAP:
        # Links are made as links (`links`): a program may look where they lead.
        shown = [each for each in found if not os.path.islink(each)]
        if os.geteuid() == 0:
            shown += [each for each in SETTINGS if os.path.isdir(each)]
        return (*_read(shown), *_etc(boundary))
    # One of them is a link.
    known = (os.path.realpath(f"/dev/{name}") for name in DEVICES)
    devices = (Place.same(path, Access.DEVICE) for path in dict.fromkeys(known))
    return (*_read(map(os.path.realpath, found)), *_etc(boundary), *_read(["/proc"]), *devices)


def copied(found: Iterable[Place]) -> frozenset[str]:
    """Which of the system's places are small files, by their names inside."""
    return frozenset(place.inside for place in found if _is_small(place.outside))


def links() -> tuple[tuple[str, str], ...]:
    """Which of the system's folders are links, as (path, target)."""
    return tuple((each, os.readlink(each)) for each in FOLDERS if os.path.islink(each))


def _is_small(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= COPIED_BYTES_MAX


def _read(paths: Iterable[str]) -> Iterator[Place]:
    for path in dict.fromkeys(paths):
        yield Place.same(path, Access.READ)


def _etc(boundary: Boundary) -> Iterator[Place]:
    """A link may lead to where nothing else is seen, as resolv.conf does: its target is shown under
    the name of the link."""
    for name in (*ETC, "resolv.conf"):
        path = f"/etc/{name}"
        real = os.path.realpath(path)
        if os.path.exists(real):
            inside = path if boundary is Boundary.BUBBLEWRAP else real
            yield Place(inside=inside, outside=real, access=Access.READ)
