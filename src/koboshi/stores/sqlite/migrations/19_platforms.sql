-- How far each chat was read, for platforms where a chat is caught up with by itself.
CREATE TABLE watermarks (
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    chat    TEXT NOT NULL,
    token   TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat)
) STRICT, WITHOUT ROWID;

-- The random part of send keys.
CREATE TABLE send_ids (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    random TEXT NOT NULL CHECK (length(random) BETWEEN 8 AND 10)
) STRICT;
