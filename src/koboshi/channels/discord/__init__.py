"""Discord: an own thin client of its gateway and its REST API (`receiving` has the theory)."""
