"""Slack: Socket Mode or the Events API for what comes in, the Web API for what goes out.

Theory of operation. The package is an own client of the Web API and of Socket Mode. An envelope is
acknowledged behind the commit of its event; a message is known by its conversation and time stamp.
Slack gives up on events after some minutes and keeps histories, so conversations are read from
their watermarks after every gap; a watermark also names the threads that we take part in, whose
replies stand in no history (`places.py`, `catching.py`). Two connections overlap where Slack renews
one. Our send key goes out as metadata, and `find.py` looks for it. Text goes out as `rich_text`
blocks, in which no letter is markup. slack-sdk checks our fake and is not used otherwise: its
socket clients queue without bounds in tasks of their own, log what a listener raises and hide gaps.
Where Slack calls us (`request_url.py`), only the history moves watermarks.
"""
