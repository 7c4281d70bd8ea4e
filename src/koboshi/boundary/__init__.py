"""What keeps commands, file tools and MCP programs inside the working folder.

A `View` says what exists for a program. It is pure, and everything is derived from it: the
arguments of bubblewrap (`bubblewrap.py`), the rules of Landlock (`rules.py`), and what the file
tools may open (`View.may_read`, `View.may_write`). So what a command cannot see, `read_file`
cannot.

`probe.py` tries which boundary holds on this machine. `enclosure.py` makes the views of one
gateway. A command is confined by its runner, in the child that becomes the command: the runner
stays outside. What cannot be confined does not run.
"""
