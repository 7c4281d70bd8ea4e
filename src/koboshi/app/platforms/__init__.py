"""The platforms: how a channel of each is built, tried, examined and asked about.

`registry.platform_of` gives the `KnownPlatform` of a name. A module here is small; it loads the
libraries of its platform when a channel of it is built or tried, so a gateway pays only for the
platforms that it uses.
"""
