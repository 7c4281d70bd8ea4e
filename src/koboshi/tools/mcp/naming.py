"""What the tools of a server are called here: `<server>_<tool>`, in letters that every provider
takes.

A name depends on the configuration and on the server's own list, never on which servers are there
or came first: a call that was stored by its name must mean the same tool after a restart.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable

NAME_CHARS_MAX = 64


def prefix_of(server: str) -> str:
    """What the names of a server's tools begin with."""
    prefix = _folded(server)
    return prefix if prefix[:1].isalpha() else f"mcp_{prefix}"


def owner_of(name: str, servers: Iterable[str]) -> str | None:
    """The server whose tool a name means: the one with the longest prefix that fits."""
    fitting = (server for server in servers if name.startswith(f"{prefix_of(server)}_"))
    return max(fitting, key=lambda server: (len(prefix_of(server)), server), default=None)


def names_of(
    server: str,
    tools: Iterable[str],
    *,
    servers: Collection[str] = (),
    taken: Collection[str] = (),
) -> dict[str, str]:
    """The name here of each tool, by the server's own name for it.

    Where `<server>_<tool>` is too long, in `taken`, another server's, or wanted by several tools of
    this one, a mark made of the tool's own name stands in between. Of several, the one that is
    spelt so keeps the plain name.
    """
    ours = list(dict.fromkeys(tools))
    wanted = Counter(_folded(tool) for tool in ours)
    names: dict[str, str] = {}
    for tool in ours:
        plain = f"{prefix_of(server)}_{_folded(tool)}"
        is_free = (
            len(plain) <= NAME_CHARS_MAX
            and plain not in taken
            and owner_of(plain, {server, *servers}) == server
            and (wanted[_folded(tool)] == 1 or tool == _folded(tool))
        )
        names[tool] = plain if is_free else _marked(server, tool)
    return names


def _marked(server: str, tool: str) -> str:
    mark = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{prefix_of(server)}_x{mark}_{_folded(tool)}"[:NAME_CHARS_MAX].rstrip("_")


def _folded(name: str) -> str:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "tool"
