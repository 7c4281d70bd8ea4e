"""The composition root: builds every object from the configuration and passes it on.

The only place that picks a store, channels, models and tools.
"""

from koboshi.app.serve import RunOptions, answer_from_home, owned_store, serve

__all__ = ["RunOptions", "answer_from_home", "owned_store", "serve"]
