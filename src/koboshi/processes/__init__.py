"""Commands on this machine: their runners, their files, their supervision, their ends."""
