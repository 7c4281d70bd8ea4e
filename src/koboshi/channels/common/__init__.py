"""What all channels that serve HTTP share."""
