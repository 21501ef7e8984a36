"""`latecomer warm`: machine code made ahead of time."""

from typing import Annotated

import typer

PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAME", help="A policy by its name, or recommended; may be given again.", show_default=False
    ),
]
DimOption = Annotated[
    list[int] | None,
    typer.Option(
        "--dim", metavar="D", min=1, help="d, the number of features; may be given again.", show_default=False
    ),
]


def warm(policy: PolicyOption = None, dim: DimOption = None) -> None:
    """Compile policies ahead of time: for images, and for machines that must not compile.

    Without options: recommended, for d = 5. The service's reader of requests is compiled besides. The machine code
    goes to the folder LATECOMER_CACHE_DIR, or to the user's own for caches. A process that finds it there loads it,
    also where the folder is read-only by then. It takes one to two minutes for each dimension, and the code is for
    this type of processor.

    \b
    Example:
      latecomer warm --policy recommended --policy OTFLinTS --dim 5 --dim 64
    """  # noqa: D301 - \b keeps the lines below it as they are
    from latecomer.policies.warm import warm_policies  # noqa: PLC0415 - `latecomer --help` is light
    from latecomer.service.http.rows_kernel import READERS  # noqa: PLC0415

    folder, seconds = warm_policies(policy or ["recommended"], dim or [5], announce=typer.echo, others=READERS)
    typer.echo(f"machine code is in {folder} ({seconds:.0f} s)")
