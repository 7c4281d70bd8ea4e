"""The page in the browser: chat, try-me panel and the operator's view, and what they look at."""
