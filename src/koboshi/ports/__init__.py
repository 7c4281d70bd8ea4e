"""Contracts with the neighbours. Protocols and the values that cross them, nothing that runs."""
