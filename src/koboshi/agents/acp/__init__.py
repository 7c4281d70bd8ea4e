"""The Agent Client Protocol, version 1: JSON-RPC, one message in a line."""
