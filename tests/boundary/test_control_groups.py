"""Where control groups of sessions can be made. The trees are files: only one kind of hierarchy is
mounted on a machine; `tests/runner/test_limits.py` uses the real one."""

import os
from pathlib import Path

import pytest

from koboshi.boundary.control_groups import ControlGroups, find, switch_on


class Tree:
    """Hierarchies of groups, and a process in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        facts = folder / "self"
        facts.mkdir()
        self.mounts, self.own = facts / "mountinfo", facts / "cgroup"
        self.mounts.write_text("")
        self.own.write_text("")

    def mount(self, point: str, kind: str, options: str, *, root: str = "/") -> Path:
        place = self.folder / point
        place.mkdir()
        line = f"30 20 0:30 {root} {place} rw,relatime - {kind} {kind} rw{options}\n"
        self.mounts.write_text(self.mounts.read_text() + line)
        return place

    def be_in(self, line: str) -> None:
        self.own.write_text(self.own.read_text() + line + "\n")

    def find(self) -> ControlGroups:
        return find("koboshi-x", facts=str(self.folder))


def group(folder: Path, controllers: str = "cpu memory pids") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers + "\n")
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text("")
    (folder / "cgroup.type").write_text("domain\n")
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def delegate(folder: Path) -> None:
    """Mark it as systemd does."""
    try:
        os.setxattr(folder, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"no marks on files here: {error}")


def test_beside_our_own_in_a_group_that_was_delegated(tree: Tree) -> None:
    place = tree.mount("unified", "cgroup2", "")
    service = group(place / "koboshi.service")
    group(service / "gateway")
    tree.be_in("0::/koboshi.service/gateway")
    delegate(service)

    found = switch_on(tree.find())

    assert found.of("s1") == (str(service / "koboshi-x-s1"),)
    assert found.is_memory_bound
    assert (service / "cgroup.subtree_control").read_text() == "+pids +memory"


def test_not_where_we_stand_in_the_delegated_group_itself(tree: Tree) -> None:
    """A group with limits for groups within has no members, and the next start would fail there."""
    place = tree.mount("unified", "cgroup2", "")
    service = group(place / "koboshi.service")
    tree.be_in("0::/koboshi.service")
    delegate(service)

    assert tree.find().bases == ()


def test_not_in_a_group_of_the_service_manager(tree: Tree) -> None:
    place = tree.mount("unified", "cgroup2", "")
    group(group(place / "user.slice") / "session.scope")
    tree.be_in("0::/user.slice/session.scope")

    assert tree.find().bases == ()


def test_not_without_the_controller_of_processes(tree: Tree) -> None:
    place = tree.mount("unified", "cgroup2", "")
    service = group(place / "koboshi.service", "memory")
    group(service / "gateway", "")
    tree.be_in("0::/koboshi.service/gateway")
    delegate(service)

    assert tree.find().bases == ()


def test_hierarchies_of_their_own_have_ours_within_our_own(tree: Tree) -> None:
    pids = tree.mount("pids", "cgroup", ",pids")
    memory = tree.mount("memory", "cgroup", ",memory", root="/docker/abc")
    (pids / "koboshi").mkdir()
    (memory / "inner").mkdir()
    tree.be_in("8:pids:/koboshi\n4:memory:/docker/abc/inner\n0::/")

    found = switch_on(tree.find())

    assert set(found.of("s2")) == {
        str(pids / "koboshi" / "koboshi-x-s2"),
        str(memory / "inner" / "koboshi-x-s2"),
    }
    assert found.is_memory_bound


def test_what_is_not_mounted_here_is_not_used(tree: Tree) -> None:
    tree.mount("pids", "cgroup", ",pids", root="/other")
    tree.be_in("8:pids:/ours")

    assert tree.find().bases == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_we_may_not_write_is_not_used(tree: Tree) -> None:
    tree.mount("pids", "cgroup", ",pids").chmod(0o555)
    tree.be_in("8:pids:/")

    assert tree.find().bases == ()


def test_a_switch_that_cannot_be_turned_leaves_no_groups(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").mkdir()

    assert switch_on(ControlGroups(bases=(str(tmp_path),))).of("s1") == ()


def test_a_sweep_removes_our_empty_groups_alone(tmp_path: Path) -> None:
    for name in ("koboshi-x-s1", "koboshi-x-s2", "koboshi-y-s1", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "koboshi-x-s2" / "member").write_text("")
    groups = ControlGroups(bases=(str(tmp_path),), prefix="koboshi-x")

    assert groups.sweep() == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "koboshi-x-s2", "koboshi-y-s1", "other",
    ]  # fmt: skip
