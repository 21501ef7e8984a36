"""A figure that a notebook shows, as SVG: pyplot, which would do it otherwise, is not needed and not imported."""

from io import BytesIO

from matplotlib.figure import Figure

from latecomer.pictures import write_picture


class NotebookFigure(Figure):
    """Matplotlib's figure, which Jupyter shows by itself where it is the last value of a cell."""

    def _repr_svg_(self) -> str:
        """Return the picture for Jupyter."""
        written = BytesIO()
        write_picture(self, written, suffix=".svg")
        return written.getvalue().decode()
