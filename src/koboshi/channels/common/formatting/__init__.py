"""Markdown as models write it: to text with spans, in parts, and on to what a platform takes."""
