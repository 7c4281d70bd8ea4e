-- Waits know their length, ages move with the clock, and unknown outcomes are counted.

ALTER TABLE turns ADD COLUMN wait_ms INTEGER NOT NULL DEFAULT 0;
UPDATE turns SET wait_ms = max(0, not_before_ms - changed_ms)
WHERE closed_ms IS NULL AND not_before_ms > 0;

ALTER TABLE outbox ADD COLUMN wait_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN aged_from_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN tried_by INTEGER REFERENCES workers;
ALTER TABLE outbox ADD COLUMN unsure INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN strikes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN tried_seq INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET aged_from_ms = created_ms,
    wait_ms = CASE WHEN not_before_ms BETWEEN 1 AND 4611686018427387903
                   THEN max(0, not_before_ms - changed_ms) ELSE 0 END
WHERE settled_ms IS NULL;
CREATE INDEX outbox_postponed ON outbox (not_before_ms)
    WHERE settled_ms IS NULL AND not_before_ms > 0;

-- The length of a quiet was not kept: at most a quarter of an hour is left of it from the next boot on.
ALTER TABLE quiet ADD COLUMN wait_ms INTEGER NOT NULL DEFAULT 0;
UPDATE quiet SET wait_ms = 900000;

CREATE TABLE undelivered (
    notice_id   INTEGER NOT NULL REFERENCES outbox,
    delivery_id INTEGER NOT NULL REFERENCES outbox,
    PRIMARY KEY (notice_id, delivery_id)
) STRICT, WITHOUT ROWID;
