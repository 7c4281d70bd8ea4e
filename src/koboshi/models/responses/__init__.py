"""The responses interface of OpenAI, which some models speak alone."""
