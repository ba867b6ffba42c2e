"""Which ledger a command is about, and the options that the commands share."""

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

Address = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        "-l",
        metavar="ADDRESS",
        help="A path, or a postgresql:// URL. Default: DISCREET_LEDGER, then the configuration file.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def named_address(address: str | None, ledger: str | None = None) -> str:
    """The address that is meant: given, or configured."""
    from discreet.ledger.default_ledger import default_address
    from discreet.ledger.store import MEMORY

    if address and ledger and address != ledger:
        raise Refused("give the ledger's address once")
    named = address or ledger or default_address()
    if not named:
        raise Refused(
            "no ledger is named: give its address (--ledger), set DISCREET_LEDGER, or make one with "
            "`discreet budget init budget.db --default`"
        )
    if named == MEMORY:
        raise Refused("a ledger in memory would end with this command: give a path or a postgresql:// URL")
    return named


def is_url(address: str) -> bool:
    """Whether it is a database's URL, not a path."""
    return "://" in address


def opened(address: str | None) -> "Ledger":
    """The ledger at an address, or the configured one."""
    from discreet.ledger.ledger import Ledger

    return Ledger(named_address(address))
