"""The command line: ``discreet``, one file a command."""


def main() -> None:
    """The ``discreet`` command."""
    from discreet.cli.errors import end_on_sigterm

    end_on_sigterm()
    from discreet.cli.app import app

    app(prog_name="discreet")
