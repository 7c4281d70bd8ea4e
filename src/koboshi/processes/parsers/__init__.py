"""Parsers of foreign files, each started for one file, in a locked boundary with limits."""
