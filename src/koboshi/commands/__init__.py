"""Commands of people to the gateway itself. They work without the model, and while a turn hangs."""
