"""The web channel: an HTTP API with server-sent events on this machine."""
