"""Write docs/approvals.md from the list in the code. Run it with the project's Python."""

from pathlib import Path

from koboshi.tools.danger import DANGERS, KEY_FOLDERS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "approvals.md"

TEMPLATE = """\
<!-- Written by scripts/approvals_page.py from the list in the code. Do not edit. -->

# Approvals

Where a boundary holds, commands run inside it without a question. To leave it, the agent has to ask
you: it calls `terminal` with `outside` and says why. `approval` under `[tools.terminal]` says more:

| `approval` | inside the boundary | outside | no boundary (`host`) |
| --- | --- | --- | --- |
| `dangerous` (as shipped) | runs | you are asked | asked about what is on the list below |
| `always` | you are asked | you are asked | asked about every command |
| `never` | runs | refused | runs |

## What you are shown

The question has the command letter by letter, in a block of its own: no Markdown is read in it.
What cannot be seen, such as a mark that turns the direction of writing, is written as its number,
`\\u202e`. Below it stand what the command leaves, the reason in the agent's own words, who asked,
and until when the question is open.

What a chat cannot show whole is not offered there. A Telegram message has 4,096 characters: of a
longer command you are told so, and you answer it on the page, under Questions, where it is shown
whole, or say no and let the agent put it into a file. Above 100,000 characters you are not asked.

## What your yes is good for

For this one call. It is bound to a hash of what you were shown: the tool, its arguments, the folder
and the boundary. If the configuration changes before the command begins, it does not run. The yes
is used up by the attempt and survives a restart of the gateway. Only an allowed person's own
message or button gives it, or the owner on the page. A command that prints "yes" approves nothing,
and a forwarded "yes" approves nothing. The page's Questions take an approval from a browser that
was let in, never from a program with the token.

You answer with the button, with `yes` or `no`, or with `/approve` or `/deny`. Other words are a no
that the agent gets to read, and so are words behind `/deny`; words behind `/approve` approve
nothing, but for `/approve always`. `/approve` and `/deny` never answer another kind of question:
what the agent wants to know from you, or whether to go on after an interruption. After a day
without an answer the question expires, and the command is not run.

## What is not asked again

These spare questions inside the boundary, where `approval = "always"` asks for every command. They
never lead out of it, and on `host` they spare nothing: a program that is allowed runs what the
agent has written, such as a Makefile.

* "Yes, and always for this command in this chat": the same command, in the same folder and chat.
  `/rules` lists what you allowed, and `/rules revoke r1` takes it back; so do `koboshi rules` and
  the page, under Questions. The rule of a person who may not use the gateway any more is void.
* `allow = ["git status", "make test"]` under `[tools]`: commands that begin with these words. Only
  single commands fit, without quotes, variables, `*`, `;` or any other letter of a shell.

## Input to processes, files, MCP

* Input to a process in the background (`process` with `write`) is judged as a command is: outside
  the boundary you are asked, and on `host` if the line is on the list or is not whole.
* `write_file` and `edit_file` never ask inside the boundary. On `host` they ask before they change
  a file that programs run by themselves: what stands in `.git`, `.envrc`, `.bashrc` and the like.
  They change files below the working folder only, and they never open what belongs to the gateway
  (its home), what holds keys ({folders}), nor devices.
* Of an MCP server's tools you are asked about each, unless `trust_hints` is set for the server and
  it declares the tool read-only. `approval` under `[mcp.<name>]` changes that.

## The list

**The list is a convenience against accidents, not a boundary.** A command can always be written so
that no list recognises it: in a script, in a variable, in base64. Where no boundary holds, the
boundary is the user that the gateway runs as, so give it one of its own. Where one holds, the list
only words the question ("It deletes a tree").

How a command is read:

* It is taken apart at `;`, `&`, `|` and line ends. A program counts where one can stand: at the
  beginning, behind `if` or `do`, in `$(…)`, and anywhere behind `env`, `xargs`, `ssh`, `-exec` and
  the like. So `grep kill notes.txt` and `echo sudo` are not asked about.
* The beginning of a quoted text counts as well, for it may be a line for another shell. So `git
  commit -m "kill the bug"` is asked about, although it is harmless.
* Of a pipe into a shell the gateway cannot know what comes out of it, so it asks.
* `git rm --cached x` and `git rm -r x` are not asked about: git has what it removes. With `-f` they
  are.
* `rm notes.txt` is not asked about. `rm -f`, `rm -r` and what deletes by a search are.

The first line that fits is the one you are told.

{dangers}
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
