"""Groups of commands that suggest the nearest name for a mistyped one."""

import click

LISTED_MAX = 8


class NearGroup(click.Group):
    """Names the nearest command where there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            # Only a mistyped name pays for loading it.
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            if not near and len(known) <= LISTED_MAX:
                hint = f"; there are: {', '.join(known)}"
            ctx.fail(f'there is no command "{name}"{hint}')
        return super().resolve_command(ctx, args)


class ListGroup(NearGroup):
    """Lists where no command is named: `koboshi turns` is `koboshi turns list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # a shell asks how the line can go on
            return super().parse_args(ctx, args)
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if not args or is_option else args)
