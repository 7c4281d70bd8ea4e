"""Discord: an own thin client of its gateway and its REST API (`receiving` has the theory).

Theory of operation. The package is an own thin client of gateway and REST, because the libraries
keep session and sequence in memory. The cursor is the session, its address and the newest event
that is stored; heartbeats name that event, so Discord never believes more. When a session cannot be
resumed, histories are read from watermarks, and the new session becomes the cursor when no channel
is behind (`catching_up.py`). That is a machine of its own beside `common/catch_up.py`: threads have
watermarks of their own and share the chat of their parent, a server tells by itself which channels
have nothing new, and what comes live of a channel that is behind is not held, for the history has
it. An unknown send is looked for first and repeated under its nonce, so neither has to be
sufficient.
"""
