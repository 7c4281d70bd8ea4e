"""What a process or a machine can run out of, and get back."""

import errno

_LEFT = {
    errno.EMFILE: "no file descriptors are left for this process",
    errno.ENFILE: "no file descriptors are left on this machine",
    errno.ENOBUFS: "no memory is left",
    errno.ENOMEM: "no memory is left",
}

_NO_THREAD = "can't start new thread"
"""What Python says, in words only, where the system refuses one."""


def shortage_in(error: BaseException | None) -> str | None:
    """What is missing, if `error` or what caused it says that something is; it passes, so whoever
    waits and tries again does right. None for every other error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _LEFT:
            return _LEFT[error.errno]
        if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
            return (
                "no thread can be started: this user has too many processes; raise TasksMax= in "
                "the unit, --pids-limit of the container, or `ulimit -u`"
            )
        error = error.__cause__
    return None
