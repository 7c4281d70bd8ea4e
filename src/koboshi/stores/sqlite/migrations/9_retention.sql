-- Old journal lines and deliveries can be deleted: what was decided from the journal is in rows.

ALTER TABLE turns ADD COLUMN newest_entry INTEGER NOT NULL DEFAULT 0;
UPDATE turns SET newest_entry = coalesce((
    SELECT number FROM journal
    WHERE journal.session_id = turns.session_id AND subject = 'message'
        AND journal.event = 'accepted'
        AND seq < (SELECT seq FROM journal AS moved WHERE moved.session_id = turns.session_id
                   AND moved.subject = 'turn' AND moved.turn_id = turns.turn_id
                   AND NOT (moved.event = 'resumed' AND moved.before = 'suspended')
                   ORDER BY seq DESC LIMIT 1)
    ORDER BY seq DESC LIMIT 1), 0)
WHERE closed_ms IS NULL;
CREATE TRIGGER turns_know_the_newest_entry AFTER UPDATE OF state ON turns
    WHEN NEW.closed_ms IS NULL AND NOT (NEW.event = 'resumed' AND OLD.state = 'suspended')
BEGIN
    UPDATE turns SET newest_entry = (SELECT coalesce(max(entry_id), 0) FROM inbox)
    WHERE turn_id = NEW.turn_id;
END;

ALTER TABLE sessions ADD COLUMN forgotten_seq INTEGER NOT NULL DEFAULT 0;

CREATE INDEX outbox_by_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX undelivered_by_delivery ON undelivered (delivery_id);
