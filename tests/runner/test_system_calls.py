"""What the kernel refuses is an error, whatever a register holds beside the answer."""

import os

import pytest

from koboshi.runner.landlock import Calls

NO_SUCH = 9_999
PROCESS_INFO = 0xC040FF0B


def test_what_is_refused_raises() -> None:
    calls = Calls()
    with pytest.raises(OSError, match="Invalid argument"):
        calls.prctl(NO_SUCH, 0)
    with pytest.raises(OSError, match="Invalid argument"):
        calls.limit(NO_SUCH, 1)
    with pytest.raises(OSError, match="no filter of system calls"):
        calls.filter(b"")
    with pytest.raises(OSError, match="not implemented"):
        calls.call(NO_SUCH)
    file = os.open(os.devnull, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="ioctl"):
            calls.filled(file, PROCESS_INFO, bytes(64))
    finally:
        os.close(file)
