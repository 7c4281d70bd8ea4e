"""The composition root: builds every object from the configuration and passes it on.

The only place that picks a store, channels, models and tools. `serve` is a gateway, `home` a home
without one.
"""
