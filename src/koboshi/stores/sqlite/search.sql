-- Statements of the full-text index, which is SQLite's own.

-- name: search_bound
-- Up to which step all are there: there is one writer, so up to the newest.
SELECT coalesce(max(seq), 0) FROM steps;

-- name: search_add
-- Index the words of a step.
INSERT INTO search_words (rowid, words) VALUES (:seq, :words);

-- name: search_clear
-- Forget all words. They are indexed anew.
INSERT INTO search_words (search_words) VALUES ('delete-all');

-- name: search_find
-- The newest steps with these words.
SELECT rowid FROM search_words WHERE search_words MATCH :words ORDER BY rowid DESC LIMIT :limit;

-- name: recall_find
-- The newest steps with these words in some sessions.
SELECT s.seq FROM search_words CROSS JOIN steps AS s ON s.seq = search_words.rowid
WHERE search_words MATCH :words AND s.session_id IN (SELECT value FROM json_each(:sessions))
ORDER BY search_words.rowid DESC LIMIT :limit;
