-- The index of open turns. Checks and triggers are made anew by themselves.

-- name: drop_one_open_turn
-- Its condition is another.
DROP INDEX one_open_turn;

-- name: one_open_turn
-- Two open turns in one session.
CREATE UNIQUE INDEX one_open_turn ON turns (session_id) WHERE closed_ms IS NULL AND state <> 'answered';
