-- What keeps a process inside. A process that ran before there was a boundary ran without one.
ALTER TABLE processes ADD COLUMN boundary TEXT NOT NULL DEFAULT 'none' CHECK (boundary IN ('bubblewrap', 'landlock', 'none'));
