"""The command itself: its verbs, its version, and how errors are shown."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from latecomer import __version__
from latecomer.cli.arena import arena
from latecomer.cli.backup import backup
from latecomer.cli.check import check
from latecomer.cli.evaluate import evaluate
from latecomer.cli.exit_codes import INTERRUPTED, exit_code
from latecomer.cli.import_log import import_log
from latecomer.cli.keys import app as keys
from latecomer.cli.log import app as log
from latecomer.cli.report import report
from latecomer.cli.reproduce import reproduce
from latecomer.cli.serve import serve
from latecomer.cli.simulate import simulate
from latecomer.cli.store import app as store
from latecomer.cli.verb_end import end_verb
from latecomer.cli.warm import warm
from latecomer.cli.window import window
from latecomer.errors import LatecomerError
from latecomer.extras import translate_import_error


class Verbs(TyperGroup):
    """Shows a `LatecomerError` of a verb as a line on standard error and an exit code; any other error is a bug."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        try:
            return self._invoke_verb(ctx)
        except LatecomerError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            end_verb()

    def _invoke_verb(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            raise translate_import_error(f"latecomer {ctx.invoked_subcommand}", error) from error.__cause__


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  latecomer reproduce --quick --out report
  latecomer simulate examples/simulate.toml --runs 20
  latecomer arena --runs 20
  latecomer window conversions.parquet --out advice
  latecomer evaluate log.parquet --window 7d
  latecomer import log.parquet --store shop.db --bandit offers --window 7d
  latecomer serve --store shop.db
  latecomer report shop.db --bandit offers
  latecomer check http://127.0.0.1:8080

`latecomer VERB --help` says more on each.
""",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"latecomer {__version__}")
        raise typer.Exit


@app.callback()
def latecomer(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Decide now, and learn from conversions that arrive late, or never."""


# A verb imports heavy packages only when it is called, so that `latecomer --help` is fast.
app.command(short_help="Run the paper's experiments into one report.")(reproduce)
app.command(short_help="Simulate an experiment of your own, described in a file.")(simulate)
app.command(short_help="Compare every policy in every world.")(arena)
app.command(short_help="Compare windows on your own delays, and recommend one.")(window)
app.command(short_help="Estimate what other policies would have earned on your log.")(evaluate)
app.command("import", short_help="Have a bandit learn from decisions that others made.")(import_log)
app.command(short_help="Serve decisions over HTTP, durably.")(serve)
app.command(short_help="Write a bandit's report as one page.")(report)
app.command(short_help="Show the alarms of a store or a server.")(check)
app.command(short_help="Copy a store that is in use.")(backup)
app.command(short_help="Compile policies ahead of time.")(warm)
app.add_typer(keys, name="keys")
app.add_typer(log, name="log", short_help="Verify, export and replay a store's log.")
app.add_typer(store, name="store", short_help="Make, upgrade and copy a store.")
