"""What people can tell the gateway itself. It works without the model, and while a turn hangs."""
