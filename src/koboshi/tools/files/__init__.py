"""Reading, writing, listing and searching files. What touches the disk runs beside the event loop,
and is bounded."""
