"""Before which commands a person is asked. Pure.

Where a boundary holds, to ask means to leave it: inside, a command runs without a question. Where
none holds (`host`), the list of dangerous commands is all there is (`danger.py`).

`allow` and the standing rules of a chat spare questions inside, under `always`. They never lead
out: a program that is allowed runs what the agent has written, a Makefile or a hook.
"""

from dataclasses import dataclass

from koboshi.domain.allowed import is_allowed
from koboshi.domain.approval import Approval
from koboshi.domain.phrases import excerpt
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.domain.text import exactly
from koboshi.domain.transcript import Need
from koboshi.tools.danger import danger_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    approval: str = "dangerous"
    """`never`, `dangerous` or `always`."""
    sandbox: Sandbox = Sandbox.HOST
    boundary: Boundary = Boundary.NONE
    """What holds on this machine. NONE means that a command is the gateway's own user."""
    allow: tuple[str, ...] = ()
    """Beginnings of commands that are not asked about inside, as the owner writes them."""
    is_members: bool = False
    """It is for a turn with words of a member: nothing of it leaves the boundary."""

    @property
    def holds(self) -> bool:
        return self.boundary is not Boundary.NONE

    def is_outside(self, *, wants_out: bool) -> bool:
        """Whether a command would leave a boundary. Without one there is nothing to leave."""
        return self.holds and wants_out

    def complaint_about_leaving(self, *, wants_out: bool) -> str | None:
        """Why it may not even be asked for, in words for the model."""
        if not self.is_outside(wants_out=wants_out):
            return None
        if self.is_members:
            return (
                "`outside` is refused here: a member takes part, and commands of members never "
                "leave the boundary. Do it inside, or tell the person that an owner has to ask"
            )
        if self.approval != "never":
            return None
        return (
            f"`outside` is refused here: nothing leaves the boundary {self.sandbox}, and no one is "
            'asked (approval = "never"). Do it inside, or tell the person what you cannot do'
        )

    def need_of_command(self, command: str, *, wants_out: bool) -> Need:
        if not self.holds:
            return self._need_on_host(command)
        if wants_out:
            return Need.APPROVAL
        is_asked = self.approval == "always" and not is_allowed(command, self.allow)
        return Need.APPROVAL if is_asked else Need.NOBODY

    def need_of_input(self, text: str, *, is_outside: bool) -> Need:
        """Of input to a process that runs. A line may do what a command does: the shell or the
        interpreter that reads it was started for that."""
        if not self.holds:
            # Half a line is completed by the next input, which cannot be judged alone.
            is_whole = not text or (text.endswith("\n") and not text.endswith("\\\n"))
            is_asked = self.approval == "dangerous" and not is_whole
            return Need.APPROVAL if is_asked else self._need_on_host(text)
        if is_outside:
            return Need.NOBODY if self.approval == "never" else Need.APPROVAL
        return Need.APPROVAL if self.approval == "always" else Need.NOBODY

    def need_of_executed_file(self) -> Need:
        """Of a change to a file that programs run by themselves, such as a hook of git."""
        return Need.NOBODY if self.holds or self.approval == "never" else Need.APPROVAL

    def _need_on_host(self, command: str) -> Need:
        is_asked = self.approval == "always" or (
            self.approval == "dangerous" and danger_in(command) is not None
        )
        return Need.APPROVAL if is_asked else Need.NOBODY


def approval_of_command(
    asking: Asking,
    command: str,
    *,
    workdir: str,
    is_background: bool,
    wants_out: bool,
    reason: str,
) -> Approval:
    """What a person is asked before a command runs."""
    is_outside = asking.is_outside(wants_out=wants_out)
    danger = danger_in(command)
    why = f" It {danger}." if danger else ""
    how = " in the background" if is_background else ""
    place = f" outside the boundary ({asking.sandbox})," if is_outside else ""
    if not asking.holds:
        note = "No boundary holds here: it runs as the gateway's own user."
    elif is_outside:
        note = (
            "Outside it can read and change what the gateway's own user can, and run anything that "
            "stands in the work folder."
        )
    else:
        note = f"It stays inside the boundary ({asking.sandbox})."
    return Approval(
        lead=f"May I run this{how}{place} in {_one_line(workdir)}?{why}",
        literal=command,
        notes=(note,),
        reason=reason,
        binds=(
            "outside" if is_outside else "inside",
            asking.sandbox,
            "background" if is_background else "foreground",
            workdir,
        ),
        may_be_kept=asking.holds and not is_outside,
    )


def approval_of_input(asking: Asking, name: str, command: str, text: str) -> Approval:
    """What a person is asked before a process gets input. `name` is the process."""
    danger = danger_in(text)
    why = f" Read as a command, it {danger}." if danger else ""
    place = " outside the boundary," if asking.holds else ""
    return Approval(
        lead=f"May I type this into {name}, which runs{place} in the background?{why}",
        literal=text,
        notes=(f"{name} is: {excerpt(_one_line(command), 300)}",),
        binds=(name, command),
    )


def approval_of_file(asking: Asking, path: str, change: str) -> Approval:
    """What a person is asked before a file is changed that programs run by themselves."""
    return Approval(
        lead=f"May I change {_one_line(path)}? Programs run what stands in it by themselves.",
        literal=change,
        notes=("No boundary holds here: what it says runs as the gateway's own user.",),
        binds=(asking.sandbox, path),
    )


def _one_line(text: str) -> str:
    return exactly(text).replace("\n", "\\u000a")
