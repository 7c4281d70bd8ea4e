"""The keys of `koboshi.toml`, each described once: its type and bounds, its default, its meaning.

A field with a description is a key; `docs/reference.md` is made of these. `values.py` checks the
written values against them. The other fields are filled in by `load`: names, and resolved secrets.
The keys of channels are in `platforms.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from koboshi.config import rules
from koboshi.config.limits import Limits
from koboshi.config.models import BudgetConfig, LinkConfig, ModelConfig, VoiceConfig
from koboshi.config.platforms import ChannelConfig
from koboshi.config.rules import NamedSecrets
from koboshi.config.secret import Secret
from koboshi.config.section import (
    SECONDS_MAX,
    TOKEN_ENV,
    TOKEN_FILE,
    Seconds,
    SecondsFrom1,
    Section,
    Url,
    VariableName,
)
from koboshi.config.values import SECRET_CHARS_MAX, ReadBy
from koboshi.domain.burial import LEASE_SECONDS

Days: TypeAlias = Annotated[int, Meta(ge=0, le=36_500, title=rules.DAYS), rules.no_short_time]
Approval: TypeAlias = Literal["never", "dangerous", "always"]
_Name: TypeAlias = Annotated[str, Meta(max_length=256)]
_Argument: TypeAlias = Annotated[str, Meta(max_length=32_000)]
_FullPath: TypeAlias = Annotated[str, Meta(max_length=4_096)]
_Variable: TypeAlias = Annotated[str, Meta(max_length=SECRET_CHARS_MAX)]


# One key is one statement, and its words are most of it.
# fmt: off
class GatewayConfig(Section, frozen=True, kw_only=True):
    """How turns run."""

    busy: Annotated[Literal["queue", "steer", "interrupt"], Meta(
        description="what a message does while a turn runs: `queue`, `steer`, "
        "`interrupt`")] = "queue"
    drain_seconds: Annotated[Seconds, Meta(
        description="how long a stop lets running steps finish; shorter where the service manager "
        "allows less")] = 45
    progress_seconds: Annotated[Seconds, Meta(
        description='"still working" after this long, with what it does, and again each time; '
        "0 = never")] = 180
    max_turns: Annotated[int, Meta(ge=1, le=1_000,
        description="turns that compute at once; one that only waits for a command does not count, "
        "and what was interrupted and goes on holds at most three quarters of these slots")] = 16
    max_open_turns: Annotated[int, Meta(ge=1, le=10_000,
        description="turns that are worked on at once, with those that only wait for a command; "
        "the others wait in the queue")] = 256
    max_commands: Annotated[int, Meta(ge=1, le=10_000,
        description="foreground commands that run at once; the others are started when one has "
        "ended")] = 64
    workdir: Annotated[Path, Meta(description="where commands run")] = Path("~/koboshi")
    agent: Annotated[str, Meta(max_length=32,
        description="the [agent](agents.md) that answers, by its name in `[agents]`; empty = the "
        "built-in one. A chat can override it (`/agent`)")] = ""
    max_agents: Annotated[int, Meta(ge=1, le=1_000,
        description="processes of foreign agents that live at once; a chat beyond them waits until "
        "one is idle")] = 8
    zone: Annotated[str, Meta(max_length=64,
        description="the time zone that the model is told times in, such as `Europe/Berlin`; empty "
        "= the machine's"), rules.time_zone] = ""
    node: Annotated[str, Meta(max_length=64,
        description="the name of this machine among the gateways of one database; empty = the "
        "host's name. No two that run may have the same"), rules.one_line] = ""
    workdir_shared: Annotated[bool, Meta(
        description="whether `workdir` is the same folder on all nodes; otherwise the agent is "
        "told when a chat goes on at another node")] = False


class MemoryConfig(Section, frozen=True, kw_only=True):
    """What the agent remembers, and what it is shown at the start of every turn."""

    enabled: Annotated[bool, Meta(
        description="whether the agent has a memory (`memory`, `recall`). "
        "[More](memory.md)")] = True
    memory_chars: Annotated[int, Meta(ge=200, le=20_000,
        description="how much it can note for a person or a group, in characters; all of it is "
        "shown in every turn")] = 2_200
    user_chars: Annotated[int, Meta(ge=200, le=20_000,
        description="likewise, of what it knows of the person")] = 1_375
    context_files: Annotated[tuple[_Name, ...], Meta(max_length=16,
        description="files of the work folder that are shown, by name"),
        rules.file_names] = ("SOUL.md", "AGENTS.md")
    context_chars: Annotated[int, Meta(ge=100, le=100_000,
        description="how much of each of them is shown")] = 8_000
    skills: Annotated[Path | None, Meta(
        description="the folder with skills; without it `skills` in the home")] = None
    skills_for: Annotated[Literal["owners", "everyone"], Meta(
        description="whose turns have skills")] = "owners"


class RecoveryConfig(Section, frozen=True, kw_only=True):
    """What happens to turns that a crash left behind."""

    policy: Annotated[Literal["auto", "ask", "off"], Meta(
        description="`auto`, `ask` or `off`; a chat can override it (`/resume-policy`)")] = "auto"
    fresh_seconds: Annotated[float, Meta(ge=-SECONDS_MAX, le=SECONDS_MAX,
        description="idle for longer is stale; 0 or less: never")] = 3_600
    attempts: Annotated[int, Meta(ge=1, le=100,
        description="deaths without progress before a turn is given up")] = 3
    boot_breaker: Annotated[bool, Meta(
        description="after 3 boots in ten minutes that found a dead turn, turns that die twice in "
        "a row are not resumed, after 5 none, until ten minutes were quiet")] = True


class TerminalConfig(Section, frozen=True, kw_only=True):
    """How the terminal tool runs commands."""

    approval: Annotated[Approval, Meta(
        description="before which commands a person is [asked](approvals.md): `always` before "
        "every one, `dangerous` before one that leaves the boundary (on `host`: one on the list), "
        "`never`: nothing leaves it")] = "dangerous"
    timeout_seconds: Annotated[SecondsFrom1, Meta(
        description="how long a foreground command may run")] = 600
    notify: Annotated[Literal["all", "result", "error", "off"], Meta(
        description="what you hear of ends that no turn of the agent tells: `all`, `result` (one "
        "line), `error`, `off`")] = "all"


class WebToolsConfig(Section, frozen=True, kw_only=True):
    """What the agent may do on the web. Needs the extra `koboshi[web]`; not offered in `locked`."""

    fetch: Annotated[bool, Meta(
        description="whether the agent has `web_fetch`, which reads public pages. "
        "[More](web.md)")] = True
    hosts: Annotated[tuple[_Name, ...], Meta(max_length=256,
        description='hosts of your own network that may be fetched, too: `["wiki.lan", '
        '"10.0.0.5:8080"]`. The gateway\'s own ports never are'), rules.names_or_none] = ()
    search: Annotated[Literal["ddgs", "searxng", "brave", "tavily", "off"], Meta(
        description="the engine of `web_search`: `ddgs` needs no key, `searxng` an address, "
        "`brave` and `tavily` a key; `off`: none")] = "ddgs"
    search_url: Annotated[Url, Meta(
        description="the address of the engine; SearXNG has to have `json` among its formats"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    search_key_env: Annotated[VariableName, Meta(
        description="the variable that holds the engine's key")] = ""


class ToolsConfig(Section, frozen=True, kw_only=True):
    """The settings of the tools."""

    plugins: Annotated[bool | tuple[str, ...], Meta(
        description="tools of [plug-ins](writing-a-tool.md): true for all that are installed, "
        "false for none, or a list of entry points"), ReadBy(rules.read_switch_or_names)] = True
    # By entry point, as JSON: only the plug-in knows which of it is secret.
    settings: Annotated[NamedSecrets, Meta(
        description="`[tools.settings.<entry point>]` is handed to that plug-in as it is"),
        ReadBy(rules.read_free_tables)] = ()
    memory_mb: Annotated[int, Meta(ge=0, le=16_777_216,
        description="how much memory the commands of a chat may take inside the sandbox, or, "
        "without [control groups](sandbox.md#limits), one process of them; 0 = half of the "
        "machine's")] = 0
    processes: Annotated[int, Meta(ge=0, le=1_000_000,
        description="how many processes and threads the commands of a chat may have inside the "
        "sandbox, or, without [control groups](sandbox.md#limits), the user; 0 = no limit")] = 4_096
    sandbox: Annotated[Literal["workspace", "locked", "host"], Meta(
        description="what commands, file tools and MCP programs may see: `workspace` (the working "
        "folder, the system read-only, the network), `locked` (the same without network), `host` "
        "(everything that the gateway's own user may). [More](sandbox.md)")] = "workspace"
    readable: Annotated[tuple[_FullPath, ...], Meta(max_length=256,
        description="files and folders beyond the working folder that may be read"),
        rules.full_paths] = ()
    writable: Annotated[tuple[_FullPath, ...], Meta(max_length=256,
        description="the same for reading and writing"), rules.full_paths] = ()
    sockets: Annotated[tuple[_FullPath, ...], Meta(max_length=64,
        description="sockets that commands may use, such as that of an ssh agent"),
        rules.full_paths] = ()
    devices: Annotated[tuple[_FullPath, ...], Meta(max_length=64,
        description="devices that commands may use, such as `/dev/dri`"), rules.full_paths] = ()
    environment: Annotated[tuple[_Variable, ...], Meta(max_length=256,
        description="names of our own variables that commands inherit"),
        rules.variable_names] = ()
    allow: Annotated[tuple[_Argument, ...], Meta(max_length=256,
        description='first words of plain commands, `["git status", "make test"]`, that are not '
        "asked about inside the boundary. They never lead out of it"), rules.plain_commands] = ()
    terminal: TerminalConfig = TerminalConfig()
    web: WebToolsConfig = WebToolsConfig()


class StoreConfig(Section, frozen=True, kw_only=True):
    """Where the truth is kept."""

    url: Annotated[Url, Meta(
        description="empty: the store is SQLite in the home. `postgresql://…`, without a password: "
        "a database that [several gateways](scale-out.md) may share; it needs the extra "
        "`koboshi[postgres]`"),
        rules.store_address] = ""
    lease_seconds: Annotated[float, Meta(ge=1, le=600,
        description="on PostgreSQL: a gateway that gives no sign of life for so long is dead for "
        "the others, which go on with its work. The same for all gateways of one "
        "database")] = LEASE_SECONDS


class RetentionConfig(Section, frozen=True, kw_only=True):
    """How long ended things are kept. 0 is for ever."""

    journal_days: Annotated[Days, Meta(
        description="how long lines of the journal are kept once their turn is closed and the chat "
        "has nothing open; 0 = for ever, else at least 7. Transcripts stay")] = 90
    deliveries_days: Annotated[Days, Meta(
        description="the same for deliveries that have ended; never shorter than the journal, "
        "whose lines show their words")] = 90


class McpConfig(Section, frozen=True, kw_only=True):
    """One MCP server: a `command` to start, or a `url` to call."""

    name: str  # "github"
    enabled: Annotated[bool, Meta(description="whether it is used")] = True
    command: Annotated[str, Meta(max_length=4_096,
        description="the program: a name on the `PATH` or a full path. Inside a sandbox it runs "
        "in a home of its own, on `host` in `gateway.workdir`"), rules.program] = ""
    args: Annotated[tuple[_Argument, ...], Meta(max_length=256,
        description="its arguments"), rules.no_nul] = ()
    env: Annotated[NamedSecrets, Meta(
        description='variables for it, `{ NAME = "value" }`'), ReadBy(rules.read_variables)] = ()
    env_vars: Annotated[tuple[_Variable, ...], Meta(max_length=256,
        description="names of our own variables that are passed on; one that is not set is an "
        "error"), rules.variable_names] = ()
    sandbox: Annotated[Literal["workspace", "locked", "host"] | None, Meta(
        description="what the program may see, as `tools.sandbox`, which is the default. "
        "[More](sandbox.md#mcp-programs)")] = None
    network: Annotated[bool, Meta(
        description="false takes the network away; that needs bubblewrap")] = True
    readable: Annotated[tuple[_FullPath, ...], Meta(max_length=256,
        description="files and folders beyond its own that it may read"), rules.full_paths] = ()
    writable: Annotated[tuple[_FullPath, ...], Meta(max_length=256,
        description="the same for reading and writing; without it, only its own home"),
        rules.full_paths] = ()
    # Some servers have a secret in their address.
    url: Annotated[Url, Meta(description="the address, instead of a command"),
        rules.web_address_or_none] = ""
    headers: Annotated[NamedSecrets, Meta(
        description='HTTP headers, `{ NAME = "value" }`'), ReadBy(rules.read_headers)] = ()
    token: Annotated[Secret | None, Meta(
        description="a secret that is sent as `Authorization: Bearer …`; systemd credential "
        "`mcp_<name>_token`")] = None
    token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = ""
    token_file: Annotated[Path | None, Meta(description=TOKEN_FILE)] = None
    trust_hints: Annotated[bool, Meta(
        description="believe the server about tools that do no harm")] = False
    approval: Annotated[Approval, Meta(
        description="which tools a person is asked about first: `never`, `dangerous` (all but "
        "those that a trusted server declares read-only), `always`")] = "dangerous"
    timeout_seconds: Annotated[SecondsFrom1, Meta(description="for one call")] = 300
    tools: Annotated[Annotated[tuple[_Name, ...], Meta(max_length=256)] | None, Meta(
        description="the only tools that may be used, as the server calls them; without it, all"),
        rules.names] = None
    passed: NamedSecrets = ()  # the variables of `env_vars`, with their values


class AgentConfig(Section, frozen=True, kw_only=True):
    """One agent of another maker, which speaks the Agent Client Protocol."""

    name: str  # "claude"
    enabled: Annotated[bool, Meta(description="whether it can be used")] = True
    command: Annotated[tuple[_Argument, ...], Meta(max_length=256,
        description="the program and its arguments"), rules.no_nul] = ()
    cwd: Annotated[Path | None, Meta(
        description="where it works, of an owner's chats; without it `gateway.workdir`")] = None
    env: Annotated[NamedSecrets, Meta(
        description='variables for it, `{ NAME = "value" }`'), ReadBy(rules.read_variables)] = ()
    env_vars: Annotated[tuple[_Variable, ...], Meta(max_length=256,
        description="names of our own variables that are passed on, such as that of its key; one "
        "that is not set is an error"), rules.variable_names] = ()
    readable: Annotated[tuple[_FullPath, ...], Meta(max_length=256,
        description="folders of its program, and what else it may read"), rules.full_paths] = ()
    writable: Annotated[tuple[_FullPath, ...], Meta(max_length=256,
        description="what it may write beyond its work folder and its home"),
        rules.full_paths] = ()
    mcp: Annotated[bool, Meta(
        description="whether our MCP servers are passed on to it; those that are started, with "
        "their variables")] = False
    idle_minutes: Annotated[float, Meta(gt=0, le=100_000,
        description="it is ended when no turn had to do with it for so long")] = 30
    start_seconds: Annotated[SecondsFrom1, Meta(
        description="how long it may take to answer when it is started, and when it opens or loads "
        "a session; then it is ended, and the person is told")] = 120
    passed: NamedSecrets = ()  # the variables of `env_vars`, with their values
# fmt: on


class Config(Struct, frozen=True, kw_only=True):
    """Everything that was decided outside the program, checked and complete."""

    home: Path
    file: Path | None = None  # None: there is no file, the defaults and the environment rule
    gateway: GatewayConfig = GatewayConfig()
    model: ModelConfig = ModelConfig()
    voice: VoiceConfig = VoiceConfig()
    budget: BudgetConfig = BudgetConfig()
    memory: MemoryConfig = MemoryConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    tools: ToolsConfig = ToolsConfig()
    store: StoreConfig = StoreConfig()
    retention: RetentionConfig = RetentionConfig()
    limits: Limits = Limits()
    channels: tuple[ChannelConfig, ...] = ()  # disabled ones included
    mcp: tuple[McpConfig, ...] = ()  # disabled ones included
    agents: tuple[AgentConfig, ...] = ()  # disabled ones included
    models: tuple[LinkConfig, ...] = ()
    chain: tuple[ModelConfig, ...] = ()  # `model` first; empty: there is no other
    sources: Mapping[str, str] = {}  # dotted key → where it was written
    warnings: tuple[str, ...] = ()

    @property
    def links(self) -> tuple[ModelConfig, ...]:
        """The models in the order in which they are asked."""
        return self.chain or (self.model,)

    @property
    def enabled_channels(self) -> tuple[ChannelConfig, ...]:
        """The channels to open."""
        return tuple(channel for channel in self.channels if channel.enabled)

    @property
    def enabled_mcp(self) -> tuple[McpConfig, ...]:
        """The MCP servers to connect to."""
        return tuple(server for server in self.mcp if server.enabled)

    @property
    def enabled_agents(self) -> Mapping[str, AgentConfig]:
        """The foreign agents that can be used, by their names."""
        return {agent.name: agent for agent in self.agents if agent.enabled}
