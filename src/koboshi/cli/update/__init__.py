"""`koboshi update`: another version in the place of this one, or this one again."""
