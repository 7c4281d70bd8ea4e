-- The words of messages and answers, by the number of their step. The index holds no text.
CREATE VIRTUAL TABLE search_words USING fts5 (
    words, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
