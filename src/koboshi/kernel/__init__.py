"""The verbs: what happens in one transaction. No driver, no file, no thread."""
