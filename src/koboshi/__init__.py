"""Koboshi: a crash-safe gateway between people on messaging platforms and AI agents."""

__version__ = "0.1.0"
