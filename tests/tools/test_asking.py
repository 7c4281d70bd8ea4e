"""Before which commands a person is asked: leaving the boundary, or on the host the list."""

import json
from pathlib import Path

import pytest

from koboshi.domain.allowed import complaint_about_entry, is_allowed
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.domain.transcript import Need
from koboshi.tools.asking import Asking, approval_of_command
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.changing import Changes, write_tool
from koboshi.tools.files.places import FilePlaces


def walled(approval: str = "dangerous", *allow: str) -> Asking:
    return Asking(
        approval=approval, sandbox=Sandbox.WORKSPACE, boundary=Boundary.BUBBLEWRAP, allow=allow
    )


@pytest.mark.parametrize(
    "approval, command, outside, need",
    [
        ("dangerous", "rm -rf build", False, Need.NOBODY),
        ("dangerous", "ls", True, Need.APPROVAL),
        ("always", "ls", False, Need.APPROVAL),
        ("always", "ls", True, Need.APPROVAL),
        ("never", "rm -rf build", False, Need.NOBODY),
    ],
)
def test_where_a_boundary_holds_leaving_it_is_asked_about(
    approval: str, command: str, outside: bool, need: Need
) -> None:
    """Issue 15, item 5."""
    assert walled(approval).need_of_command(command, wants_out=outside) is need


def test_never_refuses_to_leave_and_asks_no_person() -> None:
    """Issue 15, item 5."""
    complaint = walled("never").complaint_about_leaving(wants_out=True)

    assert complaint is not None
    assert "refused" in complaint
    assert walled("never").complaint_about_leaving(wants_out=False) is None
    assert walled("dangerous").complaint_about_leaving(wants_out=True) is None


def test_without_a_boundary_outside_means_nothing() -> None:
    host = Asking(approval="dangerous")

    assert host.need_of_command("ls", wants_out=True) is Need.NOBODY
    assert host.need_of_command("rm -rf x", wants_out=False) is Need.APPROVAL
    assert Asking(approval="never").complaint_about_leaving(wants_out=True) is None


@pytest.mark.parametrize(
    "command, is_spared",
    [
        ("git status", True),
        ("git  status -s", True),
        ("make test", True),
        ("git statuses", False),
        ("git", False),
        ("make testing", False),
        ("git status; rm x", False),
        ("git status\nrm x", False),
        ("git status && rm x", False),
        ("git status > .git/config", False),
        ("git status $(rm x)", False),
        ("git status `rm x`", False),
        ("git status *", False),
        ("git status ~", False),
        ("git status 'a'", False),
        ("git status # x", False),
        ("GIT_DIR=x git status", False),
        ("git status\trm", False),
        ("git status \\", False),
        ("git\u00a0status", False),
        ("/tmp/git status", False),
    ],
)
def test_allowed_commands_are_exact_first_words_of_plain_commands(
    command: str, is_spared: bool
) -> None:
    """Issue 15, item 5."""
    allow = ("git status", "make test")
    need = walled("always", *allow).need_of_command(command, wants_out=False)

    assert is_allowed(command, allow) is is_spared
    assert need is (Need.NOBODY if is_spared else Need.APPROVAL)


def test_what_is_allowed_never_leads_out() -> None:
    """Issue 15, item 5: the agent writes the Makefile."""
    for asking in (walled("always", "make test"), walled("dangerous", "make test")):
        assert asking.need_of_command("make test", wants_out=True) is Need.APPROVAL
    host = Asking(approval="always", allow=("make test",))
    assert host.need_of_command("make test", wants_out=False) is Need.APPROVAL


def test_an_entry_that_can_never_fit_is_named() -> None:
    assert complaint_about_entry("make test") is None
    assert "shell" in (complaint_about_entry("make test; rm x") or "")
    assert complaint_about_entry(" ") is not None


def test_the_question_says_what_it_leaves_where_it_runs_and_why() -> None:
    """Issue 15, item 5."""
    approval = approval_of_command(
        walled(),
        "make install",
        workdir="/work",
        is_background=False,
        wants_out=True,
        reason="it writes to /usr",
    )

    assert approval.lead == "May I run this outside the boundary (workspace), in /work?"
    assert "run anything that stands in the work folder" in approval.notes[0]
    assert approval.reason == "it writes to /usr"
    assert not approval.may_be_kept


def test_only_what_stays_inside_can_be_allowed_for_good() -> None:
    """Issue 15, item 5: a rule never leads out, and the host is outside."""
    for asking, outside, may in (
        (walled("always"), False, True),
        (walled("always"), True, False),
        (Asking(approval="always"), False, False),
    ):
        approval = approval_of_command(
            asking, "ls", workdir="/w", is_background=False, wants_out=outside, reason=""
        )
        assert approval.may_be_kept is may


# ── input to a process ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "asking, text, is_outside, need",
    [
        (Asking(), "rm -rf build\n", True, Need.APPROVAL),
        (Asking(), "yes\n", True, Need.NOBODY),
        (Asking(), "rm -r", True, Need.APPROVAL),
        (Asking(), "r\\\n", True, Need.APPROVAL),
        (Asking(approval="always"), "yes\n", True, Need.APPROVAL),
        (Asking(approval="never"), "rm -rf build\n", True, Need.NOBODY),
        (walled(), "rm -rf build\n", False, Need.NOBODY),
        (walled(), "yes\n", True, Need.APPROVAL),
        (walled("always"), "yes\n", False, Need.APPROVAL),
    ],
)
def test_input_is_judged_as_a_command_by_the_approval_of_its_process(
    asking: Asking, text: str, is_outside: bool, need: Need
) -> None:
    """Issue 15, V3: an unasked shell in the background took any line."""
    assert asking.need_of_input(text, is_outside=is_outside) is need


# ── files that programs run by themselves ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path, is_asked",
    [
        (".git/config", True),
        (".git/hooks/pre-commit", True),
        ("sub/../.git/config", True),
        ("link/config", True),
        (".envrc", True),
        (".bashrc", True),
        ("notes.txt", False),
        (".gitignore", False),
        (".github/workflows/test.yml", False),
    ],
)
def test_on_the_host_files_that_programs_run_are_asked_about(
    tmp_path: Path, path: str, is_asked: bool
) -> None:
    """Issue 15, V13: `write_file .git/config`, and a harmless `git status` runs its code."""
    root = tmp_path
    (root / ".git").mkdir()
    (root / "link").symlink_to(".git")
    places = FilePlaces(workdir=str(root), home=str(root / "home"))
    arguments = json.dumps({"path": path, "content": "[core]\n\tfsmonitor = ./x\n"})

    def need(asking: Asking) -> Need:
        tool = write_tool(
            Changes(places_of=lambda _: places, on_host=places, asking=asking), Beside()
        )
        return tool.need_of(arguments)

    assert need(Asking()) is (Need.APPROVAL if is_asked else Need.NOBODY)
    assert need(walled()) is Need.NOBODY
    assert need(Asking(approval="never")) is Need.NOBODY
