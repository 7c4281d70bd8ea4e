"""What the systemd units take away from the gateway and from the commands of its agent.

Two limits hold for every line. A sandboxed command has to start: bubblewrap makes namespaces of
every kind and mounts a `/proc` of its own. The kernel allows that mount only where no part of
`/proc` is covered, so a setting that covers one ends the sandbox. And commands run on over a
restart: a setting that gives each start a place of its own takes that place away from them.
`docs/running-as-a-service.md` has the reason of each setting; a test checks that.
"""

_DENIED_CALLS = "@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap"
_DEBUGGING = "@debug"

EVERYWHERE = (
    "NoNewPrivileges=yes",
    "RestrictSUIDSGID=yes",
    "RestrictRealtime=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    "SystemCallErrorNumber=EPERM",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
)
"""What a user's systemd can do as well: it has no capability, so it has seccomp alone."""

OF_SYSTEM = (
    "CapabilityBoundingSet=",
    "ProtectSystem=full",
    "ProtectProc=invisible",
    "ProtectKernelModules=yes",
    "ProtectClock=yes",
    "PrivateDevices=yes",
    "PrivateMounts=yes",
)

LEFT_OUT = (
    "# Not here, because sandboxed commands would not start: RestrictNamespaces, ProcSubset,",
    "# ProtectKernelTunables, ProtectKernelLogs, ProtectHostname. Because commands run on over a",
    "# restart: PrivateTmp, PrivateUsers, DynamicUser, RemoveIPC. Because they break what commands",
    "# do: MemoryDenyWriteExecute, OOMScoreAdjust. Limits by cgroup need a writable cgroup tree.",
)


def hardening(*, is_system: bool) -> tuple[str, ...]:
    """The lines for a unit of the machine, or for one of a user."""
    if not is_system:
        return (*EVERYWHERE, f"SystemCallFilter=~{_DENIED_CALLS}")
    return (
        *LEFT_OUT,
        *EVERYWHERE,
        f"SystemCallFilter=~{_DENIED_CALLS} {_DEBUGGING}",
        *OF_SYSTEM,
    )
