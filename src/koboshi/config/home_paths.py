"""Where things are on this machine: the home, the configuration file, secret files."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from koboshi.config.home_modes import close_files
from koboshi.config.problems import (
    ConfigError,
    ConfigProblem,
    InvalidValue,
    Origin,
    Problems,
    shown,
    shown_path,
)

FILE_BYTES_MAX = 256_000
_SECRET_BYTES_MAX = 16_384
_READABLE_OR_WRITABLE_BY_OTHERS = 0o066


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The home, the configuration file and whether that file was named."""

    home: Path
    file: Path
    is_file_named: bool


def find_places(home: Path | None, config_file: Path | None, environ: Mapping[str, str]) -> Places:
    """Home and configuration file: the argument, else the variable, else the default.

    Raises ConfigError if a `~` in one of them cannot be resolved.
    """
    named_home = home or _path_in(environ, "KOBOSHI_HOME") or Path("~/.koboshi")
    named_file = config_file or _path_in(environ, "KOBOSHI_CONFIG")
    key = "home"
    try:
        base = expand(named_home, Path.cwd(), environ)
        key = "config"
        file = expand(named_file, Path.cwd(), environ) if named_file else base / "koboshi.toml"
    except (InvalidValue, OSError) as error:
        raise ConfigError([ConfigProblem(key=key, message=f"{key}: {error}")]) from error
    return Places(home=base, file=file, is_file_named=named_file is not None)


def expand(path: Path, folder: Path, environ: Mapping[str, str]) -> Path:
    """`path` made absolute: `~` is the user's home, anything relative starts at `folder`.

    Raises InvalidValue if `~` cannot be resolved.
    """
    first = path.parts[0] if path.parts else ""
    if first == "~" and environ.get("HOME"):
        return folder.joinpath(environ["HOME"], *path.parts[1:])
    try:
        return folder / path.expanduser()
    except RuntimeError as error:
        raise InvalidValue(
            f"cannot tell where {shown(first)} is", "set HOME or give a full path"
        ) from error


def prepare_home(home: Path) -> None:
    """Make `home` a private folder (0700) that we can write to.

    A folder of ours that is too open is closed. Raises ConfigError if it is another user's and
    open to others, not a folder, or not writable.
    """
    try:
        if not home.exists():
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = home.stat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if found.st_mode & 0o077 and is_ours:
            home.chmod(0o700)
        # Before the database is open: opening and closing one of its files drops our locks on it.
        close_files(home)
    except (OSError, ValueError) as error:
        raise _wrong_home(home, f"cannot be used: {_reason(error)}") from error
    check_home(home)


def check_home(home: Path) -> None:
    """Raises ConfigError if `home` is no usable folder and cannot become one. Changes nothing."""
    try:
        if not is_there(home):
            check_folder_to_make(home)
            return
        found = home.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise _wrong_home(home, "is a file, not a folder")
        is_read_only = bool(os.statvfs(home).f_flag & os.ST_RDONLY)
    except InvalidValue as error:
        raise _wrong_home(home, f"cannot be made: {error.message}") from error
    except (OSError, ValueError) as error:
        raise _wrong_home(home, f"cannot be used: {_reason(error)}") from error
    if found.st_mode & 0o077 and found.st_uid != os.geteuid():
        hint = "run as its owner, or give another home"
        raise _wrong_home(home, "belongs to another user and is open to others", hint)
    if is_read_only:
        raise _wrong_home(home, "is on a read-only file system", "mount it for writing")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        raise _wrong_home(home, "is not writable", "check its owner and mode (0700)")


def check_folder_to_make(folder: Path) -> None:
    """Raises InvalidValue if the folder is missing and cannot be made. Changes nothing."""
    nearest = next(each for each in (folder, *folder.parents) if is_there(each))
    where = shown_path(nearest)
    try:
        is_folder = nearest.is_dir()
    except OSError as error:
        raise InvalidValue(f"{where} cannot be looked at: {_reason(error)}") from error
    if not is_folder:
        raise InvalidValue(f"{where} is not a folder")
    if nearest != folder and not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidValue(f"{where} is not writable")


def read_config_text(places: Places, problems: Problems) -> str | None:
    """The text of the configuration file, "" if there is none and none was named.

    None means it could not be read, and a problem says why.
    """
    origin = Origin(file=places.file)
    try:
        if places.file.is_dir():
            problems.add("config", "the configuration file is a folder", origin=origin)
            return None
        with places.file.open("rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        if not places.is_file_named and not places.file.is_symlink():
            return ""
        where = shown_path(places.file)
        problems.add("config", f"the configuration file {where} does not exist", origin=origin)
        return None
    except (OSError, ValueError) as error:
        message = f"the configuration file cannot be read: {_reason(error)}"
        problems.add("config", message, origin=origin)
        return None
    return _decode(content, places.file, problems)


def is_open_to_others(file: Path) -> bool:
    """Whether users other than the owner may read or write `file`; a missing one is not."""
    try:
        return bool(file.stat().st_mode & _READABLE_OR_WRITABLE_BY_OTHERS)
    except (OSError, ValueError):
        return False


def is_there(file: Path) -> bool:
    """Whether `file` exists, readable or not."""
    try:
        return os.path.lexists(file)
    except ValueError:
        return False


def read_secret_text(file: Path, *, must_be_private: bool) -> str:
    """The content of a secret file, without the white space around it.

    Raises InvalidValue if it is missing, open to others (where that matters) or not a plain text
    file. The mode is read from the open file, so it cannot be exchanged in between.
    """
    where = shown_path(file)
    try:
        # Without O_NONBLOCK a named pipe would block the start for ever.
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb") as stream:
            mode = os.fstat(handle).st_mode
            if not stat.S_ISREG(mode):
                raise InvalidValue(f"{where} is not a plain file")
            if must_be_private and mode & _READABLE_OR_WRITABLE_BY_OTHERS:
                raise InvalidValue(f"{where} is open to other users", f"run: chmod 600 {where}")
            content = stream.read(_SECRET_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise InvalidValue(f"{where} cannot be read: {_reason(error)}") from error
    if len(content) > _SECRET_BYTES_MAX:
        raise InvalidValue(f"{where} is too large for a secret")
    try:
        return content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        # The cause would carry the content along.
        raise InvalidValue(f"{where} is not a text file") from None


def _decode(content: bytes, file: Path, problems: Problems) -> str | None:
    if len(content) > FILE_BYTES_MAX:
        message = f"the configuration file is larger than {FILE_BYTES_MAX} bytes"
        problems.add("config", message, origin=Origin(file=file))
        return None
    try:
        # Some editors put a byte order mark in front; it means nothing.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.add(
            "config",
            "the configuration file is not valid utf-8",
            hint="save it as utf-8",
            origin=Origin(file=file, line=line),
        )
        return None


def _path_in(environ: Mapping[str, str], variable: str) -> Path | None:
    value = environ.get(variable, "")
    return Path(value) if value else None


def _wrong_home(home: Path, message: str, hint: str = "") -> ConfigError:
    where = shown_path(home)
    return ConfigError(
        [ConfigProblem(key="home", message=f"the home {where} {message}", hint=hint)]
    )


def _reason(error: OSError | ValueError) -> str:
    """The reason in the system's words, lower case; the path is already in the message."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return shown(said[:1].lower() + said[1:])
