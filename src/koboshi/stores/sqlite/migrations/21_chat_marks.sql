-- What an operator sets for a chat on the page: its name, and its place in the list.
CREATE TABLE chat_marks (
    session_id  INTEGER PRIMARY KEY REFERENCES sessions,
    title       TEXT NOT NULL DEFAULT '',      -- '': the first message names it
    pinned_ms   INTEGER,
    archived_ms INTEGER,
    deleted_ms  INTEGER                        -- it is listed again when a later turn opens in it
) STRICT;
