"""A foreign agent of our own, which speaks the Agent Client Protocol and does what it is told."""
