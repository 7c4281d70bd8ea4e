"""Slack: Socket Mode or the Events API for what comes in, the Web API for what goes out."""
