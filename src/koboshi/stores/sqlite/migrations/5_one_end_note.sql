-- Two notes about one end.
CREATE UNIQUE INDEX one_end_note ON steps (turn_id) WHERE kind = 'note' AND cause = 'ended';
