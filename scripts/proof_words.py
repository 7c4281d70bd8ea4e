"""The words around the figures of docs/proof.md."""

HEAD = """\
# Proof

What was killed where, how often, and what came of it. This page is written by `make torture` from
the tally of one commit if every portion of the campaigns passed on it, and by nothing else.

After every kill the gateway is started again until it is quiet. Then all of this must be true, by
its rows and by what the people, the model and the tools saw: one answer for each turn; no command
that must not run twice has; every accepted message is in a turn or was dropped with a reason; every
word that is owed was delivered, or ended with a reason; nothing is said twice without a label; at
most one open turn in a session; what is closed or stored never changes; nothing of an old
generation reaches a session; a turn is not tried for ever; every verdict is explained.
"""

AMOUNT = """\
## How much

Portions add up over runs on the same commit: `make torture PORTION=kills ROUNDS=20`. The last
column is what the count excludes with 95 % confidence: of cases of this kind, less than this share
breaks a promise. Without a violation it is three divided by the cases.
"""

CRASHES = """\
## Killed at every durable step

A real gateway, killed with SIGKILL right before and right after each step that it stores, in every
story that comes by it: a plain answer, two calls of which one goes on in the background, a
question and its reply, queued messages, a long answer in parts, a process that ends while no
gateway runs, a drain that leaves something over, a recovery that is killed again, and others. A new
verb of the store fails the tests until it is killed at, too. Again, for one story:
`KOBOSHI_TESTS=all pytest tests/crash/test_every_point.py -k job`.
"""

RANDOM = """\
## Killed at random instants

Seven people in each of several homes side by side send messages, commands, background jobs, answers
and `/stop`, while their gateway is killed at whatever instruction it is. They post again until they
are acknowledged, and follow their chats over all lives. Four more write to its bot, in private, in
a group and in topics, on a platform in Telegram's form that answers 502 and 429, breaks off and
hangs, with the message taken or not; one of them is not allowed in every life. Runners are killed.
Some lives can open only a few files more, or too few to start; some have a clock that is hours
ahead or behind, or that is set by minutes to days while they work; for some requests the model is
busy for a while and then answers.

How it is fast: nine lives in ten are forked from a process that has loaded the program, so that
they cost a start and not an import; gateways live side by side, since most of a life is waiting; a
kill comes after so many events and not after so many seconds; people say `/resume` where a turn
that died twice would wait; one check is for a hundred lives.
"""

FAULTS = """\
## Faults

Full, failing, locked and vanishing disks, no descriptors, short writes, a kill at every call that
changes the home (before it, after it, and in the middle of a write), and cuts of the power at every
moment, with sectors torn and whatever was not flushed lost or reordered. What was acknowledged is
there, the file is whole, it says what is wrong, and works again when the fault is over.
`python -m tests.faults kills --only torn:40` shows one case again.
"""

MACHINE = """\
Hypothesis drives the verbs of the store in any order beside a model of a few lines: messages that
come twice, late and out of order, buttons, `/stop` and `/new`, calls, questions, answers,
processes, sends that are put off, refused, lost or of unknown outcome, chats that move, crashes,
drains, workers that take over, writes of old claims, clocks that jump.
`KOBOSHI_SEED=3 pytest tests/sim/test_state_machine.py` shows one group of examples again.
"""

SIMULATION = """\
The runtime itself on virtual time, one thread, where a seed decides the order of everything, when
the power goes off, what platform, model, tools and processes do, and when a second worker takes the
place of one that is only cut off. Each seed has a plot: a rough platform, hours between the lives,
requests that kill, cuts, people who lose their right, a clock that is set, a model that is away, no
descriptors, another bot, a channel that hangs. What counts is what arrived at the platform, what
the model was shown, and what ran. A seed that fails is printed with its history;
`KOBOSHI_SEED=17 pytest tests/sim/test_simulation.py` shows it again.
"""

UNDONE = """\
## Wrong on purpose

A campaign that cannot fail proves nothing. Bugs that gateways have had are planted one at a time,
and subjects of the fault campaigns are doctored; each must be found.
"""

UNPROVEN = """\
No whole campaign has been published for this version yet. `make torture` puts the figures here once
every portion has passed.
"""

FOOT = """\
## See for yourself

| command | does |
|---|---|
| `koboshi torture` | kills throw-away gateways while people talk to them, and prints the tally |
| `make test` | a fixed portion of every campaign |
| `make torture` | every portion once; adds to `build/tally.json`; if all passed, this page |
| `make torture PORTION=kills ROUNDS=20` | more of one portion, with other seeds |
| `make soak` | a day of virtual time and an hour of real time: memory and descriptors stay flat |

A seed plans the same kills and messages again (`koboshi torture --seed 7`); what the machine makes
of their timing is its own. Seeds that found something are kept, and tried each time.
"""
