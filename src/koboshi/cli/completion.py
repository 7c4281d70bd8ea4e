"""`koboshi completion`: what a shell needs to complete our commands."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_KOBOSHI_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes koboshi in SHELL.

    \b
    bash   eval "$(koboshi completion bash)"       in ~/.bashrc
    zsh    eval "$(koboshi completion zsh)"        in ~/.zshrc
    fish   koboshi completion fish > ~/.config/fish/completions/koboshi.fish
    """
    from koboshi.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the shells that we name"
    click.echo(kind(main, {}, "koboshi", VARIABLE).source())
