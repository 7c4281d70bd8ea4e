"""What a process or a machine can run out of, and get back."""

import errno

from koboshi.domain.errors import KoboshiError

_LEFT = {
    errno.EMFILE: "no file descriptors are left for this process",
    errno.ENFILE: "no file descriptors are left on this machine",
    errno.ENOBUFS: "no memory is left",
    errno.ENOMEM: "no memory is left",
}

_NO_THREAD = "can't start new thread"
"""What Python says, in words only, where the system refuses one."""
_NOT_OPENED = "Too many open files"
"""What the loader of libraries says, in words only, where it gets no descriptor."""


class Shortage(KoboshiError):
    """Something is missing on our side, and comes back: try again later. Its words say what, and
    nothing of what was tried."""


def shortage_in(error: BaseException | None) -> str | None:
    """What is missing, if `error`, what caused it, or one of a group of errors says that something
    is. A shortage passes: the caller waits and tries again. None for every other error."""
    while error is not None:
        if isinstance(error, BaseExceptionGroup):
            found = (shortage_in(each) for each in error.exceptions)
            return next((missing for missing in found if missing is not None), None)
        if isinstance(error, Shortage):
            return str(error)
        if isinstance(error, OSError) and error.errno in _LEFT:
            return _LEFT[error.errno]
        if isinstance(error, ImportError) and _NOT_OPENED in str(error):
            return _LEFT[errno.EMFILE]
        if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
            return (
                "no thread can be started: this user has too many processes; raise TasksMax= in "
                "the unit, --pids-limit of the container, or `ulimit -u`"
            )
        error = error.__cause__ or _held_by(error)
    return None


def _held_by(error: BaseException) -> BaseException | None:
    """The error that another one was made of: the library of our connections names no cause."""
    return next((each for each in error.args if isinstance(each, BaseException)), None)


def shortage_behind(error: BaseException) -> Shortage | None:
    """The shortage in an error that must not be shown itself, as the cause of another one."""
    missing = shortage_in(error)
    return None if missing is None else Shortage(missing)
