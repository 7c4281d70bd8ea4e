"""From files and environment to one `Config`, or to everything that is wrong with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from koboshi.config.limits import Limits
from koboshi.config.lines import KeyPath
from koboshi.config.places import Places, expand, find_places, is_there, read_config_text
from koboshi.config.problems import NOWHERE, Origin, Problems, Unfit
from koboshi.config.read import Setting, Settings, parse_toml, read_environ, read_tree
from koboshi.config.schema import dotted
from koboshi.config.secret import Secret
from koboshi.config.servers import ServerKeys, check_names, goes_together, passed_variables
from koboshi.config.shape import (
    PLATFORMS,
    SECTIONS,
    ChannelConfig,
    Config,
    GatewayConfig,
    McpConfig,
    ModelConfig,
    RecoveryConfig,
    RetentionConfig,
    Section,
    StoreConfig,
    TelegramConfig,
    TerminalConfig,
    ToolsConfig,
    WebConfig,
    keys_of,
)
from koboshi.config.shared import check_shared
from koboshi.config.specs import fit_secret, told
from koboshi.config.tokens import TOKEN_KEYS, TokenKeys, find_token, is_clear
from koboshi.config.warn import warnings_about

KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
}
"""Where the key of a provider lies if nothing else is said; all others get none."""
PORT_OPTION = "--port"


def load(
    home: Path | None,
    config_file: Path | None,
    environ: Mapping[str, str],
    *,
    needs_secrets: bool = True,
    web_port: int | None = None,
) -> Config:
    """The configuration, complete and checked. Whoever only looks at a home does not need the
    secrets of its gateway, which may be there for the gateway alone.

    `web_port` rules over what is set for the one web channel. Arguments rule over KOBOSHI_HOME and
    KOBOSHI_CONFIG; `KOBOSHI__SECTION__KEY` variables rule over
    the file. Nothing is written. Raises ConfigError with every problem found, not only the first.
    """
    places = find_places(home, config_file, environ)
    problems, settings = Problems(), Settings()
    text = read_config_text(places, problems)
    tree = parse_toml(text, places.file, problems) if text is not None else None
    if text is not None and tree is not None:
        read_tree(tree, text, places.file, settings, problems)
    read_environ(environ, settings, problems)
    if tree is None:
        # Without the file, which channels there are and what they need would be guesswork.
        problems.raise_if_any()
    draft = _Draft(
        places=places,
        environ=environ,
        settings=settings,
        problems=problems,
        needs_secrets=needs_secrets,
        web_port=web_port,
    )
    config = draft.config()
    problems.raise_if_any()
    return config


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A configuration in the making. What it returns counts only if no problem was noted."""

    places: Places
    environ: Mapping[str, str]
    settings: Settings
    problems: Problems
    needs_secrets: bool
    web_port: int | None = None
    sources: dict[str, str] = field(default_factory=dict)

    def config(self) -> Config:
        if not any(path[:2] == ("channels", "web") for path in self.settings.channels):
            self.settings.channels[("channels", "web", "main")] = NOWHERE
        if self.web_port is not None:
            self._set_web_port(self.web_port)
        parts = {
            name: self._values(kind, tuple(name.split("."))) for name, kind in SECTIONS.items()
        }
        channels = tuple(self._channel(path) for path in self.settings.channels)
        self._check_together(channels)
        servers = tuple(self._server(path) for path in self.settings.servers)
        sections = {dotted(path): origin for path, origin in self.settings.servers.items()}
        check_names(sections, self.problems)
        config = Config(
            home=self.places.home,
            file=self.places.file if is_there(self.places.file) else None,
            gateway=GatewayConfig(**parts["gateway"]),
            model=self._with_api_key(ModelConfig(**parts["model"])),
            recovery=RecoveryConfig(**parts["recovery"]),
            tools=ToolsConfig(
                **(parts["tools"] | {"terminal": TerminalConfig(**parts["tools.terminal"])})
            ),
            store=StoreConfig(**parts["store"]),
            retention=RetentionConfig(**parts["retention"]),
            limits=Limits(**parts["limits"]),
            channels=channels,
            mcp=servers,
            sources=MappingProxyType(self.sources),
        )
        written = {dotted(path): setting.origin for path, setting in self.settings.values.items()}
        return replace(config, warnings=warnings_about(config, written))

    def _set_web_port(self, port: int) -> None:
        """As if it were written for the web channel. There has to be one, and only one."""
        web = [
            path
            for path in self.settings.channels
            if path[1] == "web" and self._is_enabled((*path, "enabled"))
        ]
        if len(web) == 1:
            setting = Setting(value=port, origin=Origin(variable=PORT_OPTION))
            self.settings.values[(*web[0], "port")] = setting
            return
        names = ", ".join(dotted(path) for path in web) or "none"
        message = f"{PORT_OPTION} is for one web channel, and there are others: {names}"
        self.problems.add("channels.web", message, hint="set port in the section of each")

    def _is_enabled(self, key: KeyPath) -> bool:
        setting = self.settings.values.get(key)
        return setting is None or setting.value is not False

    def _values(self, section: Section, path: KeyPath) -> dict[str, Any]:
        """The value of every key of `section`: as it was set, else its default."""
        values: dict[str, Any] = {each.name: each.default for each in fields(section)}
        for name, spec in keys_of(section).items():
            key = (*path, name)
            setting = self.settings.values.get(key)
            self.sources[dotted(key)] = str(setting.origin if setting else NOWHERE)
            if setting is not None:
                values[name] = setting.value
            if spec.is_path and values[name] is not None:
                values[name] = self._expanded(key, values[name])
        return values

    def _expanded(self, key: KeyPath, path: Path) -> Path:
        """`path` made absolute; a relative one starts at the folder of the configuration file."""
        setting = self.settings.values.get(key)
        try:
            return expand(path, self.places.file.parent, self.environ)
        except Unfit as unfit:
            origin = setting.origin if setting else NOWHERE
            message = f"{dotted(key)}: {unfit.message}"
            self.problems.add(dotted(key), message, hint=unfit.hint, origin=origin)
            return path

    def _with_api_key(self, model: ModelConfig) -> ModelConfig:
        """The model with its key, if it needs one and the variable is set. Where none is named,
        each provider has its own: a key is never sent to another one."""
        if ("model", "api_key_env") not in self.settings.values and not model.is_scripted:
            provider = model.name.partition(":")[0]
            model = replace(model, api_key_env=KEY_VARIABLES.get(provider, ""))
        text = self.environ.get(model.api_key_env, "") if model.api_key_env else ""
        if model.is_scripted or not text:
            return model
        name = f"variable {model.api_key_env}"
        try:
            secret = Secret(fit_secret(text.strip()))
        except Unfit as unfit:
            self.problems.add("model.api_key_env", f"the api key in {name} {unfit.message}")
            return model
        self.sources["model.api_key"] = name
        return replace(model, api_key=secret)

    def _channel(self, path: KeyPath) -> ChannelConfig:
        _, platform, account = path
        kind = PLATFORMS[platform]
        values = self._values(kind, path) | {"name": f"{platform}:{account}"}
        origin = self.settings.channels[path]
        keys = self._token_keys(path, values, f"{platform}_{account}_token", origin)
        judged = [dotted((*path, name)) for name in ("enabled", *TOKEN_KEYS)]
        if self.problems.concern(judged) or not is_clear(keys, self.problems):
            return kind(**values)
        if values["enabled"]:
            values["token"] = self._token(keys, is_needed=kind is TelegramConfig)
        return kind(**values)

    def _server(self, path: KeyPath) -> McpConfig:
        _, name = path
        values = self._values(McpConfig, path) | {"name": name}
        origin = self.settings.servers[path]
        keys = ServerKeys(
            section=dotted(path),
            origin=origin,
            given=self._given(path, values, tuple(keys_of(McpConfig))),
            env=values["env"],
            env_vars=values["env_vars"],
            headers=values["headers"],
        )
        if self.problems.concern_section(keys.section) or not goes_together(keys, self.problems):
            return McpConfig(**values)
        tokens = self._token_keys(path, values, f"mcp_{name}_token", origin)
        if is_clear(tokens, self.problems) and values["enabled"]:
            problems = self._problems_of_secrets()
            values["passed"] = passed_variables(keys, self.environ, problems)
            if keys.is_address:
                values["token"] = self._token(tokens, is_needed=False)
        return McpConfig(**values)

    def _given(
        self, path: KeyPath, values: Mapping[str, Any], names: tuple[str, ...]
    ) -> dict[str, Origin]:
        """Those of the keys that somebody wrote and that say something, and where."""
        return {
            name: self.settings.values[(*path, name)].origin
            for name in names
            if (*path, name) in self.settings.values and values[name] not in ("", ())
        }

    def _token_keys(
        self, path: KeyPath, values: dict[str, Any], credential: str, origin: Origin
    ) -> TokenKeys:
        given = self._given(path, values, TOKEN_KEYS)
        if given and "token_env" not in given:
            values["token_env"] = ""  # the default steps aside
        return TokenKeys(
            section=dotted(path),
            credential=credential,
            origin=origin,
            given=given,
            token=values["token"],
            token_env=values["token_env"],
            token_file=values["token_file"],
        )

    def _token(self, keys: TokenKeys, *, is_needed: bool) -> Secret | None:
        found = find_token(keys, self.environ, self._problems_of_secrets())
        if found is not None:
            self.sources[f"{keys.section}.token"] = found.source
            return found.secret
        names = [keys.section, *(f"{keys.section}.{name}" for name in TOKEN_KEYS)]
        if is_needed and self.needs_secrets and not self.problems.concern(names):
            message = f"{keys.section} needs a token"
            hint = "set token_env or token_file"
            self.problems.add(keys.section, message, hint=hint, origin=keys.origin)
        return None

    def _problems_of_secrets(self) -> Problems:
        """Where it is noted that a secret can not be had; nowhere, if nobody needs it."""
        return self.problems if self.needs_secrets else Problems()

    def _check_together(self, channels: tuple[ChannelConfig, ...]) -> None:
        """Two channels must not share what only one can hold; and only a proxy that was stated may
        stand between us and other machines."""
        for channel, path in zip(channels, self.settings.channels, strict=True):
            if isinstance(channel, WebConfig) and not channel.is_reached_safely:
                key = f"{dotted(path)}.host"
                hint = (
                    'with a proxy in front, say where people reach it: public_url = "https://…"; '
                    "else use 127.0.0.1"
                )
                message = f"{key} must be a loopback address, not {told(channel.host)}"
                origin = self.settings.channels[path]
                self.problems.add(key, message, hint=hint, origin=origin)
        sections = {dotted(path): origin for path, origin in self.settings.channels.items()}
        check_shared(dict(zip(sections, channels, strict=True)), sections, self.problems)
