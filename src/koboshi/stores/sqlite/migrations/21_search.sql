-- The words of messages and answers, by the number of their step, and up to which step they are indexed.
-- The index holds no text. It is filled behind the commits, and a step behind the place is searched by itself.
CREATE VIRTUAL TABLE search_words USING fts5 (
    words, content = '', tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TABLE search_place (
    one      INTEGER PRIMARY KEY CHECK (one = 1),  -- two places
    upto_seq INTEGER NOT NULL
) STRICT;

INSERT INTO search_place (one, upto_seq) VALUES (1, 0);
