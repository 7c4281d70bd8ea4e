"""`koboshi chat`: talk to the gateway from a terminal."""
