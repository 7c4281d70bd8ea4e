"""One folder per platform: its transport, its codec, and how it shows things."""
