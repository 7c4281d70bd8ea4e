"""What keeps a command inside: the mode that an owner writes down, and the means that holds it."""

from enum import StrEnum


class Sandbox(StrEnum):
    """What commands, file tools and MCP programs may see."""

    WORKSPACE = "workspace"  # the working folder, the system read-only, the network
    LOCKED = "locked"  # the same without network
    HOST = "host"  # everything that the gateway's own user may


class Boundary(StrEnum):
    """By which means a process was kept inside."""

    BUBBLEWRAP = "bubblewrap"  # namespaces of its own
    LANDLOCK = "landlock"  # the kernel's rules for one process and its children
    NONE = "none"  # it ran as the gateway's own user
