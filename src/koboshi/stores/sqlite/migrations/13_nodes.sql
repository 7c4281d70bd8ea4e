-- Who owns what is known by node and home, and which chats exclude each other by a key.
ALTER TABLE workers ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN home TEXT NOT NULL DEFAULT '';
UPDATE workers SET node = host;

ALTER TABLE sessions ADD COLUMN lock_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN node TEXT;
UPDATE sessions SET lock_key = chat_key(channel, chat);

ALTER TABLE processes ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN home TEXT NOT NULL DEFAULT '';
