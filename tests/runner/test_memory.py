"""Where the kernel counts the processes that it killed because memory ran out."""

from pathlib import Path

import pytest

from koboshi.runner.memory import candidates, kills_in

UNIT = "/system.slice/koboshi.service"


@pytest.mark.parametrize(
    "groups, first",
    [
        (f"0::{UNIT}\n", f"/sys/fs/cgroup{UNIT}/memory.events.local"),
        ("0::/\n", "/sys/fs/cgroup/memory.events.local"),
        (
            f"4:cpu,memory:{UNIT}\n1:name=systemd:/elsewhere\n0::/\n",
            f"/sys/fs/cgroup/memory{UNIT}/memory.oom_control",
        ),
        ("0::/a:b\n", "/sys/fs/cgroup/a:b/memory.events.local"),
    ],
    ids=["unified", "the root", "of its own", "a colon in a name"],
)
def test_the_count_is_looked_for_in_our_own_group(groups: str, first: str) -> None:
    assert candidates(groups)[0] == first


def test_without_groups_there_is_no_count() -> None:
    assert candidates("") == []


@pytest.mark.parametrize(
    "content, kills",
    [
        ("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n", 2),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7),
        ("oom_kill_disable 0\nunder_oom 0\n", None),
        ("oom_kill many\n", None),
        ("", None),
    ],
    ids=["unified", "of its own", "an old kernel", "no number", "empty"],
)
def test_the_count_is_read_in_both_forms(tmp_path: Path, content: str, kills: int | None) -> None:
    (tmp_path / "count").write_text(content)

    assert kills_in(str(tmp_path / "count")) == kills


def test_a_group_that_is_gone_has_no_count(tmp_path: Path) -> None:
    assert kills_in(str(tmp_path / "none")) is None
    assert kills_in("") is None
