"""The models that a gateway can ask, each behind `ports.model`."""
