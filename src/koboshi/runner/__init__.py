"""The tiny program that owns one command and outlives the gateway: stdlib only, starts fast."""
