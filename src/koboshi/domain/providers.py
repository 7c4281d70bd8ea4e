"""What the gateway knows of model providers by their names alone."""

KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
}
"""The variable in which a provider's own tools look for its key. All others have none: a key is
never sent to another provider."""
