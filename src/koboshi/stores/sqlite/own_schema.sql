-- The words of messages and answers, by the number of their step. The index holds no text.
-- The beginnings of words are indexed, too: the newest hits of a half-typed word cost no more than others.
CREATE VIRTUAL TABLE search_words USING fts5 (
    words, content = '', tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3 4 5'
);
