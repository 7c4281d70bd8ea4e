"""What a database server promises of a commit that it has acknowledged, in words."""

LOCAL = frozenset({"local", "off"})


def is_waited_for(names: str, commit: str) -> bool:
    """Whether a commit is acknowledged only when a standby has it. `names` are the synchronous
    standbys as the server is configured, `commit` is its `synchronous_commit`."""
    return bool(names.strip()) and commit not in LOCAL


def standby_words(names: str, commit: str, connected: int) -> str:
    """Which promise holds when the server is lost; `connected` standbys follow it now."""
    if is_waited_for(names, commit):
        if commit == "remote_write":
            return "synchronous standby: nothing is lost, unless both machines lose their power"
        return "synchronous standby: nothing acknowledged is lost with the server"
    if connected:
        many = "an asynchronous standby" if connected == 1 else f"{connected} asynchronous standbys"
        return f"{many}: a failover may lose the newest commits, as much as the standby is behind"
    return "no standby: what the server has is on its own disks"
