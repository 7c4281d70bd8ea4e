"""Shared fixtures. Keep this file tiny: a fixture used by one folder lives in that folder."""
