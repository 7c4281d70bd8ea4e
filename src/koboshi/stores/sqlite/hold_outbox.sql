-- Nothing that a restored database owes goes out by itself.
UPDATE outbox SET state = 'owed', worker_id = NULL, not_before_ms = :until_ms,
    reason = 'held after a restore'
WHERE settled_ms IS NULL AND state IN ('owed', 'sending');
