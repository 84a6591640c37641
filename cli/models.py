"""`tcpfit models`: the models, and all there is to say of one."""

from __future__ import annotations

import click

from tcpfit.exceptions import InvalidParameter


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names for the shell to complete."""
    from tcpfit.report import cards

    return [name for name in cards.described() if name.startswith(incomplete)]


@click.command(short_help="List the models, or print all there is to say of one.")
@click.argument("name", required=False, shell_complete=_names)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="What to print."
)
def models(name: str | None, form: str) -> None:
    """List the models: the paper, what each predicts, which parameters it needs and what it assumes.

    \b
    tcpfit models
    tcpfit models pftk-full

    With a NAME: its law, parameters with units and defaults, conventions, assumptions, domain, departures from the
    paper, validation and DOI.
    """
    from tcpfit.report import cards, contract, terminal

    try:
        chosen = list(cards.described().values()) if name is None else [cards.named(name)]
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from error
    if form == "json":
        click.echo(contract.dumps(cards.document(chosen)))
    elif name is None:
        cards.show_all(chosen, terminal.console())
    else:
        cards.show(chosen[0], terminal.console())
