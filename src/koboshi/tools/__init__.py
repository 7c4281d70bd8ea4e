"""What the agent can do in the world: one small file for each tool."""
