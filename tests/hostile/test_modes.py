"""Issue 15, item 7: everything of ours is for its owner alone; a gateway of root says so."""

import json
import os
import stat
from pathlib import Path

from tests.cli.process import Gateway, gateway, koboshi, until

CALLS = [
    {"tool": "write_file", "arguments": {"path": "a.txt", "content": "x"}},
    {"tool": "terminal", "arguments": {"command": "echo hi"}},
]
SCRIPT = "script: " + json.dumps(
    [
        {"calls": CALLS},
        {"calls": [{"tool": "send_file", "arguments": {"path": "a.txt"}}]},
        {"text": "through"},
    ]
)


OF_THE_AGENT = ("inside/home/*/*", "inside/tmp/*/*")
"""What its programs put into the folders that are kept for them has the modes that they give."""


def ours(home: Path) -> list[Path]:
    """The home and all that is in it, but what belongs to the agent."""
    theirs = {path for pattern in OF_THE_AGENT for path in home.glob(pattern)}
    found = [home, *home.rglob("*")]
    return [each for each in found if not theirs & {each, *each.parents}]


def open_to_others(home: Path) -> list[str]:
    return [
        f"{mode:o} {each.relative_to(home)}"
        for each in ours(home)
        if (mode := mode_of(each)) & 0o077
    ]


def mode_of(path: Path) -> int:
    """The mode of a file or folder; 0 for a link, and for a file that has gone meanwhile."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return 0
    return 0 if stat.S_ISLNK(found.st_mode) else stat.S_IMODE(found.st_mode)


def busy(one: Gateway) -> None:
    """A file sent, a command run, a backup made."""
    one.wait_state(one.say("terminal", SCRIPT), "done")
    assert koboshi("backup", "create", home=one.home).code == 0


def test_nothing_in_the_home_is_open_to_others(home: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(tmp_path / "work")) as one:
            busy(one)
            assert open_to_others(home) == []
            assert (home / "inside" / "home").is_dir(), "the command ran inside"
    finally:
        os.umask(before)


def test_what_an_earlier_version_left_open_is_closed_at_the_start(
    home: Path, tmp_path: Path
) -> None:
    work = {"KOBOSHI__GATEWAY__WORKDIR": str(tmp_path / "work")}
    with gateway(home, **work) as one:
        busy(one)
        one.stop()
    outside = tmp_path / "outside"
    outside.write_text("not ours")
    outside.chmod(0o644)
    (home / "files" / "link").symlink_to(outside)
    for each in ours(home):
        if not each.is_symlink():
            each.chmod(each.stat().st_mode | 0o055)
    with gateway(home, **work):
        until(lambda: open_to_others(home) == [], "all is closed")

    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_a_gateway_of_root_says_so(home: Path) -> None:
    with gateway(home) as one:
        warned = one.events("runs_as_root")
        found = koboshi("doctor", "--json", home=home).document

    assert bool(warned) is (os.geteuid() == 0)
    users = [each for each in found["findings"] if each["check"] == "user"]
    assert bool(users) is (os.geteuid() == 0)
