"""Agents of other makers: the languages in which we talk with them."""
