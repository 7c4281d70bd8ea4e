"""The tiny program that owns one command and outlives the gateway.

Theory of operation. The gateway, the runner, its keeper and the command may each be killed at any
instruction, and no signal or pipe between them survives that. So all they tell each other are
files in one folder and one lock, written in an order in which each file is a fact:

* The lock is held exactly while the runner or its keeper lives. Only a process that finds it free
  may conclude anything: without `born.json` the command never began, and `void` settles that for
  good; with `exit.json` it ended so; with a birth and no end it is lost, and its outcome unknown.
* `born.json` is durable before the command starts, so no command runs that no gateway knows of.
  Room for `exit.json` is reserved before that, so that a full disk cannot swallow the end.
* `exit.json` is durable before the lock is free. A later gateway reads it as the first one would
  have: a runner that is adopted and one that never lost its gateway cannot be told apart.
* The processes of a command are found by a marker in their environment, by descent and by session
  (`tree.py`), and are ended as a whole: stopped first, so that no step follows another.
* The keeper is the runner's parent and holds the lock as well. If the runner alone is killed, the
  keeper ends the tree before the lock becomes free.
* A keeper is forked by a process of the gateway that has this program loaded (`nursery.py`), or is
  started alone. Nothing is learnt from which of them it was: the files and the lock are the same,
  and a nursery may die at any instruction, too.

Its facts lie in the folder of its process, so that they survive every other process:

    lock        taken by the gateway, inherited by the runner and its keeper, free exactly when both
                are dead
    spec        what to run, by the gateway: `name=value` ended by NUL, an empty entry, and then the
                environment in the same form; no part of a command can hold a NUL
    void        it must not begin; by the process that found the lock free and no birth
    born.json   who the runner and its keeper are; durable before the command starts
    child       who the command is; there before the command begins
    stdin       a FIFO, if the command takes input
    in/N, out/N of an agent: the messages for it, and what it wrote (`wires.py`)
    bell        of an agent: a FIFO that says that there may be a message
    log, log.N  the output: its head, and segments of its tail, named by the offset of their begin
    end         the gateway wants it to end, with this grace in seconds
    exit.json   how it ended; durable before the lock is free
    runner.err  what went wrong in the runner itself

A hundred of these may wait at a time, and every command pays for one. So they import only what is
built into the interpreter, and `select`: `os`, `signal` and `json` cost more than all the rest. The
first two are fronts of `posix` and `_signal`, which are used directly.
"""
