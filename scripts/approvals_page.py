"""Write docs/approvals.md from the list in the code. Run it with the project's Python."""

from pathlib import Path

from koboshi.tools.danger import DANGERS, KEY_FOLDERS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "approvals.md"

TEMPLATE = """\
<!-- Written by scripts/approvals_page.py from the list in the code. Do not edit. -->

# Approvals

Before some commands the agent has to ask you. `approval` under `[tools.terminal]` says before
which: `never`, `dangerous` (as shipped: those on the list below) or `always`.

The question shows the command and the folder exactly as they will be used; what can not be seen in
a text, such as marks that turn the direction of writing, is written out. Your yes is good for this
one call: it is used up by the attempt, it survives a restart of the gateway, and only an allowed
person's own message or button gives it. A command that prints "yes" approves nothing.

You answer with the button, with `yes` or `no`, or with `/approve` or `/deny`. Other words are a no
that the agent gets to read, and so are words behind `/deny`; words behind `/approve` approve
nothing. `/approve` and `/deny` never answer another kind of question: what the agent wants to know
from you, or whether to go on after an interruption. After a day without an answer the question
expires, and the command is not run.

**The list is a convenience against accidents, not a boundary.** A command can always be written so
that no list recognises it: in a script, in a variable, in base64. The boundary is the user that the
gateway runs as, so give it one of its own.

How a command is read:

* It is taken apart at `;`, `&`, `|` and line ends. A program counts where one can stand: at the
  beginning, behind `if` or `do`, in `$(…)`, and anywhere behind `env`, `xargs`, `ssh`, `-exec` and
  the like. So `grep kill notes.txt` and `echo sudo` are not asked about.
* The beginning of a quoted text counts as well, for it may be a line for another shell. So
  `git commit -m "kill the bug"` is asked about, although it is harmless.
* Of a pipe into a shell the gateway can not know what comes out of it, so it asks.
* `git rm --cached x` and `git rm -r x` are not asked about: git has what it removes. With `-f` they
  are.
* `rm notes.txt` is not asked about. `rm -f`, `rm -r` and what deletes by a search are.

The first line that fits is the one you are told.

{dangers}

`approval` under `[tools.terminal]` covers commands only. The file tools (`write_file`, `edit_file`)
never ask, not even with `approval = "always"`: they change files below the working folder only, and
they never open what belongs to the gateway (its home), what holds keys ({folders}),
nor devices and the like. For the tools of an MCP server, `approval` under `[mcp.<name>]` rules.
"""


def render() -> str:
    """The whole page, as the code stands now."""
    header = ("the command", "as in", "programs")
    rows = (
        (danger.label, _code(danger.example), " ".join(_code(each) for each in danger.programs))
        for danger in DANGERS
    )
    lines = [header, ("---",) * len(header), *rows]
    return TEMPLATE.format(
        dangers="\n".join("| " + " | ".join(cells) + " |" for cells in lines),
        folders=", ".join(_code(name) for name in KEY_FOLDERS),
    )


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
