"""Telegram: how answers are shown there."""
