"""The tiny program that owns one command and outlives the gateway.

Its facts lie in the folder of its process, so that they survive every other process:

    lock        taken by the gateway, inherited by the runner and its keeper, free exactly when both
                are dead
    spec        what to run, by the gateway: `name=value` ended by NUL, an empty entry, and then the
                environment in the same form; no part of a command can hold a NUL
    void        it must not begin; by the process that found the lock free and no birth
    born.json   who the runner and its keeper are; durable before the command starts
    child       who the command is; there before the command begins
    stdin       a FIFO, if the command takes input
    log, log.N  the output: its head, and segments of its tail, named by the offset of their begin
    end         the gateway wants it to end, with this grace in seconds
    exit.json   how it ended; durable before the lock is free
    runner.err  what went wrong in the runner itself

A hundred of these may wait at a time, and every command pays for one. So they import only what is
built into the interpreter, and `select`: `os`, `signal` and `json` cost more than all the rest. The
first two are fronts of `posix` and `_signal`, which are used directly.
"""
