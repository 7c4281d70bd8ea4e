"""The shell: tasks, time limits and claims. It performs what the domain decides."""
