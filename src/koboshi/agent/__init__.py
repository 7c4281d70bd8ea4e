"""Transcript → request to the model."""
