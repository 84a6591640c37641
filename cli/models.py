"""`tcpfit models`: the models, and all there is to say of one."""

from __future__ import annotations

import click

from tcpfit.exceptions import InvalidParameter

from . import options


@click.command(short_help="List the models, or print all there is to say of one.")
@click.argument("name", required=False, shell_complete=options.model_names)
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
    from tcpfit.models import catalogue, get
    from tcpfit.report import cards, contract, terminal

    try:
        chosen = list(catalogue().values()) if name is None else [get(name)]
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from error
    if form == "json":
        click.echo(contract.dumps(cards.document(chosen)))
    elif name is None:
        cards.show_all(chosen, terminal.console())
    else:
        cards.show(chosen[0], terminal.console())
