"""What each key of the configuration means, for docs/reference.md."""

_TOKEN = "the secret itself; allowed, and warned about"
_TOKEN_FILE = "a file that holds it, readable by its owner only"

KEY_WORDS: dict[str, str] = {
    "gateway.busy": "what a message does while a turn runs: `queue`, `steer`, `interrupt`",
    "gateway.drain_seconds": "how long a stop lets running steps finish; shorter where the service "
    "manager allows less",
    "gateway.progress_seconds": '"still working" after this long, with what it does, and again '
    "each time; 0 = never",
    "gateway.max_turns": "turns that compute at once; one that only waits for a command does not "
    "count, and what was interrupted and goes on holds at most three quarters of these slots",
    "gateway.max_open_turns": "turns that are worked on at once, with those that only wait for a "
    "command; the others wait in the queue",
    "gateway.max_commands": "foreground commands that run at once; the others are "
    "started when one has ended",
    "gateway.workdir": "where commands run",
    "gateway.zone": "the time zone that the model is told times in, such as `Europe/Berlin`; empty "
    "= the machine's",
    "model.name": "`scripted`, `openai:<model>`, `openai-responses:<model>`, `anthropic:<model>`, "
    "`google:<model>`, `ollama:<model>`, or the prefix of a [plug-in](writing-a-model.md)",
    "model.base_url": "a compatible endpoint of your own",
    "model.api_key_env": "the variable that holds the key; for other providers their own: "
    "`ANTHROPIC_API_KEY`, `GOOGLE_API_KEY`, none for a plug-in",
    "model.system_prompt": "added to the built-in one",
    "model.patience_seconds": "how long a request is tried again while the provider does not "
    "answer; 0 = give up at once",
    "recovery.policy": "`auto`, `ask` or `off`; a chat can override it (`/resume-policy`)",
    "recovery.fresh_seconds": "idle for longer is stale; 0 or less: never",
    "recovery.attempts": "deaths without progress before a turn is given up",
    "recovery.boot_breaker": "after 3 boots in ten minutes that found a dead turn, turns that die "
    "twice in a row are not resumed, after 5 none, until ten minutes were quiet",
    "tools.plugins": "tools of [plug-ins](writing-a-tool.md): true for all that are installed, "
    "false for none, or a list of entry points",
    "tools.settings": "`[tools.settings.<entry point>]` is handed to that plug-in as it is",
    "tools.terminal.approval": "before which commands (only commands) a person is "
    "[asked](approvals.md): `never`, `dangerous`, `always`",
    "tools.terminal.timeout_seconds": "how long a command may run that somebody waits for",
    "tools.terminal.notify": "what you hear of ends that no turn of the agent tells: `all`, "
    "`result` (one line), `error`, `off`",
    "store.url": "checked, and without effect yet: the store is SQLite in the home",
    "retention.journal_days": "how long lines of the journal are kept once their turn is closed "
    "and the chat has nothing open; 0 = for ever, else at least 7. Transcripts stay",
    "retention.deliveries_days": "the same for deliveries that have ended; never shorter than the "
    "journal, whose lines show their words",
    "limits.context_tokens_max": "how much of a conversation the model is shown at once, in "
    "(estimated) tokens; what is older is summed up. Set it below what your model takes, answer "
    "included",
    "limits.background_per_session_max": "commands of one chat that may run in the background at "
    "once; the agent is told when there are more",
    "channels.telegram.<name>.enabled": "whether the bot is used",
    "channels.telegram.<name>.token": f"the token of the [bot](telegram.md): {_TOKEN}",
    "channels.telegram.<name>.token_env": "the variable that holds it",
    "channels.telegram.<name>.token_file": _TOKEN_FILE,
    "channels.telegram.<name>.api_base": "any server of the Bot API",
    "channels.telegram.<name>.allow": 'stable ids of those who may use the gateway, or `["*"]`; '
    "others are let in by [pairing](people.md)",
    "channels.telegram.<name>.ambiguous": "a send of unknown outcome: `probe` (look for it, else "
    "label), `label`, or `hold` until `koboshi outbox retry`",
    "channels.telegram.<name>.groups": "what of a group is for the agent: `mention` (what is said "
    "to it) or `all`; a chat can override it (`/listen`)",
    "channels.telegram.<name>.rate_per_second": "messages to all chats together; 0 = no limit of "
    "our own",
    "channels.telegram.<name>.webhook_url": "where Telegram calls us; empty = we ask for updates",
    "channels.telegram.<name>.webhook_host": "where a proxy passes these calls on to",
    "channels.telegram.<name>.webhook_port": "its port",
    "channels.web.<name>.enabled": "whether there is a web channel; without a section, `main` is",
    "channels.web.<name>.token": f"the secret of programs: {_TOKEN}. Without any, one is made in "
    "`<home>/web-token`",
    "channels.web.<name>.token_env": "the variable that holds it",
    "channels.web.<name>.token_file": _TOKEN_FILE,
    "channels.web.<name>.host": "loopback only, unless `public_url` states a proxy",
    "channels.web.<name>.public_url": "where people reach it through a proxy, over TLS",
    "channels.web.<name>.port": "0 = any that is free",
    "mcp.<name>.enabled": "whether it is used",
    "mcp.<name>.command": "the program: a name on the `PATH` or a full path. It runs in "
    "`gateway.workdir`",
    "mcp.<name>.args": "its arguments",
    "mcp.<name>.env": 'variables for it, `{ NAME = "value" }`',
    "mcp.<name>.env_vars": "names of our own variables that are passed on; one that is not set is "
    "an error",
    "mcp.<name>.url": "the address, instead of a command",
    "mcp.<name>.headers": 'HTTP headers, `{ NAME = "value" }`',
    "mcp.<name>.token": "a secret that is sent as `Authorization: Bearer …`; systemd credential "
    "`mcp_<name>_token`",
    "mcp.<name>.token_env": "the variable that holds it",
    "mcp.<name>.token_file": _TOKEN_FILE,
    "mcp.<name>.trust_hints": "believe the server about tools that do no harm",
    "mcp.<name>.approval": "which tools a person is asked about first: `never`, `dangerous` (those "
    "the server itself marks as destructive), `always`",
    "mcp.<name>.timeout_seconds": "for one call",
    "mcp.<name>.tools": "the only tools that may be used, as the server calls them; without it, "
    "all",
}
