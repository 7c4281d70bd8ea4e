"""What tells a process from a later one with the same pid."""

from pathlib import Path

UNKNOWN = "unknown"


def birth_of(pid: int | None = None) -> str:
    """Boot and start time of a process, this one if none is named."""
    stat = Path("/proc", "self" if pid is None else str(pid), "stat")
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        ticks = stat.read_text(encoding="ascii").rpartition(")")[2].split()[19]
    except OSError:
        return UNKNOWN
    return f"{boot}/{ticks}"
