"""Telegram, by its Bot API.

Theory of operation. The package is an own thin client of the Bot API. Asking for updates from a
number on acknowledges those before it, so the next question follows the commit of the last batch.
Cursor and keys belong to the bot's id. 4xx and 429 prove that nothing was sent; time-outs, resets
and 5xx do not. An unknown send is looked for by an edit that changes nothing (`probe.py`).
"""
