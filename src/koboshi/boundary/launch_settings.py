"""What `launch.py` is told."""

from typing import TypedDict


class LaunchSettings(TypedDict):
    """What `launch.py` is told of the boundary of a program."""

    launcher: list[str]
    grants: list[tuple[str, int]]
    has_network: bool
    ports: list[int]
    memory_max: int
    processes_max: int
    groups: list[str]
    modules: str
    """The folder that holds the modules `landlock` and `cgroup`."""
