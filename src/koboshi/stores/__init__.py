"""Implementations of `ports.store`."""
