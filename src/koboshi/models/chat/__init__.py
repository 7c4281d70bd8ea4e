"""Chat completions: the interface of OpenAI, and of every server that imitates it."""
