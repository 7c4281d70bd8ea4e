"""From files and environment to one `Config`, or to everything that is wrong with them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from koboshi.config.chain import chain_of, own_variable
from koboshi.config.cross_rules import (
    Written,
    check_agents,
    check_channels,
    check_server_names,
    check_voice,
    has_one_way,
    is_one_server,
    keys_of_secret,
    passed_variables,
)
from koboshi.config.home_paths import Places, expand, find_places, is_there, read_config_text
from koboshi.config.line_numbers import KeyPath
from koboshi.config.models import LinkConfig, ModelConfig
from koboshi.config.platforms import ChannelConfig, config_of_platform
from koboshi.config.problems import NOWHERE, InvalidValue, Origin, Problems
from koboshi.config.read import ConfigValues, Setting, parse_toml, read_environ, read_tree
from koboshi.config.schema import dotted, know_platforms
from koboshi.config.secret import Secret
from koboshi.config.sections import AgentConfig, Config, McpConfig
from koboshi.config.tokens import find_token
from koboshi.config.values import fit_secret, keys_of, sections_of
from koboshi.config.warn import warnings_about

PORT_OPTION = "--port"


def load(
    home: Path | None,
    config_file: Path | None,
    environ: Mapping[str, str],
    *,
    needs_secrets: bool = True,
    web_port: int | None = None,
) -> Config:
    """The configuration, complete and checked. A command that only reads a home does not need the
    secrets of its gateway, which may be available to the gateway alone.

    `web_port` overrides the one web channel's port. Arguments override KOBOSHI_HOME and
    KOBOSHI_CONFIG; `KOBOSHI__SECTION__KEY` variables override the file. Nothing is written. Raises
    ConfigError with every problem found, not only the first.
    """
    places = find_places(home, config_file, environ)
    problems = Problems()
    settings = ConfigValues(problems)
    text = read_config_text(places, problems)
    tree = parse_toml(text, places.file, problems) if text is not None else None
    know_platforms(_platforms_in(tree, environ))
    if text is not None and tree is not None:
        read_tree(tree, text, places.file, settings)
    read_environ(environ, settings)
    if tree is None:
        # Without the file, the channels and their needs would be guesswork.
        problems.raise_if_any()
    draft = _Draft(
        places=places,
        environ=environ,
        settings=settings,
        problems=problems,
        needs_secrets=needs_secrets,
    )
    config = draft.config(web_port)
    problems.raise_if_any()
    return config


class _Draft(Struct, kw_only=True):
    """A configuration in the making. What it returns counts only if no problem was noted."""

    places: Places
    environ: Mapping[str, str]
    settings: ConfigValues
    problems: Problems
    needs_secrets: bool
    sources: dict[str, str] = {}

    def config(self, web_port: int | None) -> Config:
        channels_named, servers_named = self.settings.channels, self.settings.servers
        if not any(path[:2] == ("channels", "web") for path in channels_named):
            channels_named[("channels", "web", "main")] = NOWHERE
        if web_port is not None:
            self._set_web_port(web_port)
        sections = self._sections(Config, ())
        channels = {dotted(path): self._channel(path) for path in channels_named}
        check_channels(channels, _by_section(channels_named), self.problems)
        servers = tuple(self._server(path) for path in servers_named)
        check_server_names(_by_section(servers_named), self.problems)
        agents = tuple(self._agent(path) for path in self.settings.agents)
        chosen = sections["gateway"].agent
        check_agents(agents, _by_section(self.settings.agents), chosen, self.problems)
        check_voice(sections["voice"], self.problems)
        links = tuple(self._link(path) for path in self.settings.models)
        chain = self._chain(self._with_api_key(sections["model"]), links)
        config = Config(
            home=self.places.home,
            file=self.places.file if is_there(self.places.file) else None,
            channels=tuple(channels.values()),
            mcp=servers,
            agents=agents,
            models=links,
            chain=chain if len(chain) > 1 else (),
            **(sections | {"model": chain[0]}),
        )
        written = {dotted(path): setting.origin for path, setting in self.settings.values.items()}
        warnings = warnings_about(config, written)
        return replace(config, sources=MappingProxyType(self.sources), warnings=warnings)

    def _set_web_port(self, port: int) -> None:
        """As if it were written for the web channel, of which there must be exactly one."""
        web = [
            path
            for path in self.settings.channels
            if path[1] == "web" and self._is_enabled((*path, "enabled"))
        ]
        if len(web) == 1:
            setting = Setting(port, Origin(variable=PORT_OPTION))
            self.settings.values[(*web[0], "port")] = setting
            return
        names = ", ".join(dotted(path) for path in web) or "none"
        message = f"{PORT_OPTION} is for one web channel, and there are others: {names}"
        self.problems.add("channels.web", message, hint="set port in the section of each")

    def _is_enabled(self, key: KeyPath) -> bool:
        setting = self.settings.values.get(key)
        return setting is None or setting.value is not False

    def _sections(self, around: type[Struct], path: KeyPath) -> dict[str, Any]:
        """The sections inside another one, by name."""
        return {
            name: kind(**self._values(kind, (*path, name)))
            for name, kind in sections_of(around).items()
        }

    def _values(self, section: type[Struct], path: KeyPath) -> dict[str, Any]:
        """The value of every key of `section`: as it was set, else its default; and the sections
        inside."""
        values: dict[str, Any] = {}
        for name, key in keys_of(section).items():
            setting = self.settings.values.get((*path, name))
            origin = setting.origin if setting else NOWHERE
            self.sources[dotted((*path, name))] = str(origin)
            values[name] = setting.value if setting else key.default
            if isinstance(values[name], Path):
                values[name] = self._expanded((*path, name), values[name], origin)
        return values | self._sections(section, path)

    def _expanded(self, key: KeyPath, path: Path, origin: Origin) -> Path:
        """`path` made absolute; a relative one starts at the folder of the configuration file."""
        try:
            return expand(path, self.places.file.parent, self.environ)
        except InvalidValue as error:
            message = f"{dotted(key)}: {error.message}"
            self.problems.add(dotted(key), message, hint=error.hint, origin=origin)
            return path

    def _link(self, path: KeyPath) -> LinkConfig:
        return LinkConfig(name=path[1], **self._values(LinkConfig, path))

    def _chain(self, first: ModelConfig, links: tuple[LinkConfig, ...]) -> tuple[ModelConfig, ...]:
        """The models in their order, each as if it were the only one; at least one."""
        names = first.chain
        if not names or ("model", "name") in self.settings.values:
            names = tuple(dict.fromkeys((first.name, *names)))
        else:
            first = replace(first, api_key=None)
        models = chain_of(first, names, links, self.problems)
        return tuple(
            model if model.name == first.name and not model.section else self._keyed(model)
            for model in models
        )

    def _with_api_key(self, model: ModelConfig) -> ModelConfig:
        """The model with its key, if it needs one and the variable is set. Without a named
        variable, each provider has its own: a key is never sent to another one."""
        if ("model", "api_key_env") not in self.settings.values and not model.is_scripted:
            model = replace(model, api_key_env=own_variable(model.name))
        return self._keyed(model)

    def _keyed(self, model: ModelConfig) -> ModelConfig:
        text = self.environ.get(model.api_key_env, "") if model.api_key_env else ""
        if model.is_scripted or not text:
            return model
        name = f"variable {model.api_key_env}"
        try:
            secret = Secret(fit_secret(text.strip()))
        except InvalidValue as error:
            place = f"models.{model.section}" if model.section else "model"
            self.problems.add(f"{place}.api_key_env", f"the api key in {name} {error.message}")
            return model
        self.sources["model.api_key"] = name
        return replace(model, api_key=secret)

    def _channel(self, path: KeyPath) -> ChannelConfig:
        _, platform, account = path
        kind = config_of_platform(platform)
        values, written = self._written(kind, path, self.settings.channels[path])
        channel = kind(name=f"{platform}:{account}", **values)
        found: dict[str, Secret | None] = {}
        for secret in filter(channel.uses, kind.secret_names):
            judged = [dotted((*path, name)) for name in ("enabled", *keys_of_secret(secret))]
            is_clear = not self.problems.concern(judged)
            if is_clear and has_one_way(written, self.problems, secret) and channel.enabled:
                is_needed = secret in kind.secrets_needed
                found[secret] = self._secret(channel, written, secret, is_needed=is_needed)
        return replace(channel, **found)

    def _server(self, path: KeyPath) -> McpConfig:
        values, written = self._written(McpConfig, path, self.settings.servers[path])
        server = McpConfig(name=path[1], **values)
        if self.problems.concern_section(written.section):
            return server
        is_clear = is_one_server(server, written, self.problems)
        if not is_clear or not has_one_way(written, self.problems) or not server.enabled:
            return server
        passed = passed_variables(server, written, self.environ, self._problems_of_secrets())
        token = (
            self._secret(server, written, "token", is_needed=False) if server.url else server.token
        )
        return replace(server, passed=passed, token=token)

    def _agent(self, path: KeyPath) -> AgentConfig:
        values, written = self._written(AgentConfig, path, self.settings.agents[path])
        agent = AgentConfig(name=path[1], **values)
        if not agent.enabled or self.problems.concern_section(written.section):
            return agent
        passed = passed_variables(agent, written, self.environ, self._problems_of_secrets())
        return replace(agent, passed=passed)

    def _written(
        self, kind: type[Struct], path: KeyPath, origin: Origin
    ) -> tuple[dict[str, Any], Written]:
        """The values of a channel or server, and which of them were written."""
        values, settings = self._values(kind, path), self.settings.values
        keys = {
            name: settings[(*path, name)].origin
            for name, value in values.items()
            if (*path, name) in settings and value not in ("", ())
        }
        written = Written(section=dotted(path), origin=origin, keys=keys)
        for secret in getattr(kind, "secret_names", ("token",)):
            if written.ways(secret) and f"{secret}_env" not in keys:
                values[f"{secret}_env"] = ""  # the default steps aside
        return values, written

    def _secret(
        self, holder: ChannelConfig | McpConfig, written: Written, name: str, *, is_needed: bool
    ) -> Secret | None:
        section = written.section
        found = find_token(holder, written, self.environ, self._problems_of_secrets(), name)
        if found is not None:
            self.sources[f"{section}.{name}"] = found.source
            return found.secret
        names = [section, *(f"{section}.{key}" for key in keys_of_secret(name))]
        if is_needed and self.needs_secrets and not self.problems.concern(names):
            hint = f"set {name}_env or {name}_file"
            message = f"{section} needs a {name}"
            self.problems.add(section, message, hint=hint, origin=written.origin)
        return None

    def _problems_of_secrets(self) -> Problems:
        """Where a missing secret is noted; nowhere, if it is not needed."""
        return self.problems if self.needs_secrets else Problems()


def _platforms_in(tree: dict[str, object] | None, environ: Mapping[str, str]) -> Iterator[str]:
    """The platforms that are named, ours or not."""
    channels = (tree or {}).get("channels")
    yield from channels if isinstance(channels, dict) else ()
    for variable in environ:
        parts = variable.lower().split("__")
        if parts[:2] == ["koboshi", "channels"] and len(parts) > 3:
            yield parts[2]


def _by_section(named: Mapping[KeyPath, Origin]) -> dict[str, Origin]:
    return {dotted(path): origin for path, origin in named.items()}
