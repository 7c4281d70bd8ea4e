"""Matrix: rooms of a homeserver, by its client-server interface."""
