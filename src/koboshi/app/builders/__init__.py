"""The objects of one gateway, built from its configuration: one builder for each folder."""
