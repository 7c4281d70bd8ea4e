"""How a program is started that must not outlive us: by `launch.py`, which stays its parent."""

import json
import os
import sys
from collections.abc import Iterable, Sequence

from koboshi.boundary import launch
from koboshi.boundary.launch_settings import LaunchSettings
from koboshi.ports.runners import Confinement
from koboshi.runner import landlock

_KEEPER = (sys.executable, "-I", "-S", launch.__file__)


def held_command(
    confinement: Confinement, ports: Iterable[int], command: Sequence[str]
) -> list[str]:
    """What to start, so that the command runs inside its boundary, cannot use these ports of ours,
    and ends with this process. `launch.END`, sent to what is started, ends all of it by force."""
    settings = LaunchSettings(
        launcher=list(confinement.launcher),
        grants=list(confinement.grants),
        has_network=confinement.has_network,
        ports=sorted(ports),
        memory_max=confinement.memory_bytes_max,
        processes_max=confinement.processes_max,
        groups=list(confinement.groups),
        modules=os.path.dirname(landlock.__file__),
    )
    return [*_KEEPER, str(os.getpid()), json.dumps(settings), *command]


def folder_of_start(confinement: Confinement, workdir: str) -> str:
    """Where to start it. Bubblewrap enters the folder by itself: it has another name outside."""
    return "/" if confinement.launcher else workdir
