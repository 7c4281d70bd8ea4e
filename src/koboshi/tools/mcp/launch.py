"""Becomes a server, after seeing to it that the server dies with the gateway.

Run as a program of its own, by its path and with the interpreter's `-I -S`: nothing of Python may
run between fork and exec in a process with threads, and nothing of koboshi is needed here.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def launch(parent: int, command: list[str]) -> None:
    """Replace this process by `command`. Returns only by ending the process."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The signal is only for a death that is yet to come.
    if os.getppid() != parent:
        sys.exit("the gateway is gone")
    # Python ignores it, and what is ignored stays so in the next program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    launch(int(sys.argv[1]), sys.argv[2:])
