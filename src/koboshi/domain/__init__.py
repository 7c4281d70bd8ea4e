"""What things are and what must happen: pure values and pure decisions, no clock, no I/O."""
