"""The same turn on other durable engines, each in a process and an environment of its own."""
