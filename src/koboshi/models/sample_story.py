"""Something to tell, long enough to be interrupted."""

WORD_MS = 90

STORY = """\
The doll is called **okiagari-koboshi**, the little priest who gets up. It is made of paper, round \
at the bottom, with a weight of clay inside. Push it over and it comes back, every time. Nothing \
in it *decides* to get up: that is simply how it is built.

A gateway can be built the same way. Everything is on disk before the next thing begins:

1. your message, before you are told that it was taken;
2. each tool call, before it runs and after it has ended;
3. the answer, before the first attempt to send it.

So there is no special path for the bad day. What starts after `kill -9` is the code that runs on \
a good one, and it reads from what was written down what to do next. If you killed it just now, in \
the middle of this story, you have seen it: the words went away and came back, and nothing was \
said twice."""
