"""Transcript → what the model is asked."""
