-- Statements of the search, which is SQLite's own.

-- name: search_place
-- Up to which step the words are indexed.
SELECT upto_seq FROM search_place;

-- name: search_steps
-- The next steps to index.
SELECT seq, kind, body, erased_ms FROM steps WHERE seq > :after ORDER BY seq LIMIT :limit;

-- name: search_add
-- Index the words of a step.
INSERT INTO search_words (rowid, words) VALUES (:seq, :words);

-- name: search_move
-- The words are indexed up to a step.
UPDATE search_place SET upto_seq = :upto;

-- name: search_clear
-- Forget all words. They are indexed anew.
INSERT INTO search_words (search_words) VALUES ('delete-all');

-- name: search_find
-- The newest steps with these words.
SELECT rowid FROM search_words WHERE search_words MATCH :words ORDER BY rowid DESC LIMIT :limit;

-- name: search_tail
-- The newest steps that are not indexed.
SELECT seq, kind, body FROM steps
WHERE seq > :after AND erased_ms IS NULL AND kind IN ('message', 'answer')
ORDER BY seq DESC LIMIT :limit;

-- name: search_hit
-- A step, and the chat that it is in.
SELECT st.kind, st.body, st.at_ms, s.session_id, s.chat, coalesce(m.title, ''), m.deleted_ms
FROM steps AS st JOIN sessions AS s ON s.session_id = st.session_id
LEFT JOIN chat_marks AS m ON m.session_id = s.session_id
WHERE st.seq = :seq AND s.channel = :channel AND s.thread = '' AND st.erased_ms IS NULL;

-- name: search_titles
-- The names that chats were given.
SELECT s.session_id, s.chat, m.title, s.changed_ms FROM chat_marks AS m
JOIN sessions AS s ON s.session_id = m.session_id
WHERE m.title <> '' AND s.channel = :channel AND s.thread = ''
ORDER BY s.session_id DESC LIMIT :limit;
