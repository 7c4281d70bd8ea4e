"""`koboshi service`: run the gateway under systemd or launchd."""
