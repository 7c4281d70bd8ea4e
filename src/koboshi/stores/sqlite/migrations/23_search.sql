-- Up to which step the words of messages and answers are indexed, and the index, which holds no text.
CREATE TABLE search_place (
    one      INTEGER PRIMARY KEY CHECK (one = 1),  -- two places
    upto_seq INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE search_words USING fts5 (
    words, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
