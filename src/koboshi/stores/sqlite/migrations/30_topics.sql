-- Why a schedule that wants a thread has none, and works in the conversation.
ALTER TABLE schedules ADD COLUMN thread_why TEXT;
