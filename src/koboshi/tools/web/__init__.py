"""The web for the agent: `web_fetch` and `web_search`. Loaded when a call needs it."""
