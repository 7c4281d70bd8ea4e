"""`koboshi init`: a few questions, and the configuration they make."""
