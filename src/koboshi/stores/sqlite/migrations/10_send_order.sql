-- What was sent before what is known by the order of the commits: clocks are set.
ALTER TABLE outbox ADD COLUMN sent_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN settled_seq INTEGER NOT NULL DEFAULT 0;
