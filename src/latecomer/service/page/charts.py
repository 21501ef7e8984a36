"""Charts as inline SVG: shapes alone, stretched to the page; numbers and names stand beside them as text.

Colours come from the style sheet by class (`series-0` …), so that one chart serves light and dark. Every chart has a
table behind it.
"""

from collections.abc import Sequence

from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import fold

WIDTH, HEIGHT = 600, 160
SERIES = 9
"""Colours of the style sheet."""


def draw_figure(
    title: str,
    shapes: Sequence[Markup],
    *,
    key: str,
    axis: tuple[str, str],
    ends: Sequence[str],
    label: str,
    table: Markup | None = None,
    legend: Markup | None = None,
) -> Markup:
    """Frame a chart: its title, the values at the top and at the bottom, names along its x axis, and its table.

    `key` is an id of its own on the page; `label` says in a sentence what the chart shows. Charts that follow one
    another may share the table of the last.
    """
    lines = [
        tag("line", x1=0, x2=WIDTH, y1=HEIGHT * part / 4, y2=HEIGHT * part / 4, class_="grid") for part in range(1, 4)
    ]
    drawing = tag(
        "svg",
        *lines,
        *shapes,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        focusable="false",
    )
    return tag(
        "figure",
        tag("figcaption", tag("h4", title)),
        legend,
        tag(
            "div",
            tag("div", tag("span", axis[0]), tag("span", axis[1]), class_="axis", aria_hidden="true"),
            drawing,
            tag("div", *(tag("span", end) for end in ends), class_="ends", aria_hidden="true"),
            class_="plot",
        ),
        None if table is None else fold("Show the numbers", key, table),
    )


def draw_bars(stacks: Sequence[Sequence[float]], top: float) -> list[Markup]:
    """Draw a bar of parts for each entry, the first part at the bottom: one path for each series."""
    step, paths = WIDTH / max(len(stacks), 1), {}  # type: tuple[float, dict[int, list[str]]]
    for number, parts in enumerate(stacks):
        floor = float(HEIGHT)
        for series, part in enumerate(parts):
            height = HEIGHT * part / top if top else 0.0
            if height > 0:
                bar = f"M{(number + 0.1) * step:.2f} {floor:.2f}h{0.8 * step:.2f}v{-height:.2f}h{-0.8 * step:.2f}z"
                paths.setdefault(series, []).append(bar)
                floor -= height
    return [tag("path", d="".join(bars), class_=f"bar series-{series}") for series, bars in sorted(paths.items())]


def draw_line(values: Sequence[float | None], top: float, *, series: int) -> list[Markup]:
    """Draw a line through the middles of entries; it is broken where a value is missing."""
    step, runs = WIDTH / max(len(values), 1), [[]]  # type: tuple[float, list[list[str]]]
    for number, value in enumerate(values):
        if value is None or not top:
            runs.append([])
        else:
            runs[-1].append(f"{(number + 0.5) * step:.2f},{HEIGHT * (1 - value / top):.2f}")
    return [_draw_run(run, series) for run in runs if run]


def draw_curve(points: Sequence[tuple[float, float]], *, series: int) -> list[Markup]:
    """Draw a curve through points whose coordinates are shares of the axes."""
    return [_draw_run([f"{x * WIDTH:.2f},{HEIGHT * (1 - y):.2f}" for x, y in points], series)] if points else []


def draw_band(points: Sequence[tuple[float, float, float]]) -> list[Markup]:
    """Draw the area between two curves: shares of the x axis, low and high."""
    if not points:
        return []
    above = [f"{x * WIDTH:.2f},{HEIGHT * (1 - high):.2f}" for x, _, high in points]
    below = [f"{x * WIDTH:.2f},{HEIGHT * (1 - low):.2f}" for x, low, _ in reversed(points)]
    return [tag("polygon", points=" ".join(above + below), class_="band")]


def _draw_run(run: list[str], series: int) -> Markup:
    run = run if len(run) > 1 else [run[0], f"{float(run[0].split(',')[0]) + 2:.2f},{run[0].split(',')[1]}"]
    return tag("polyline", points=" ".join(run), class_=f"line series-{series}")


def draw_interval(low: float, value: float, high: float, *, reach: float, label: str) -> Markup:
    """Draw an interval around a value on an axis from −reach to reach, with a mark at 0: a small chart for a row."""

    def place(number: float) -> float:
        return round(100.0 * (1.0 + max(-1.0, min(1.0, number / (reach or 1.0)))), 2)

    return tag(
        "svg",
        tag("rect", x=place(low), y=5, width=max(round(place(high) - place(low), 2), 1), height=6, class_="interval"),
        tag("line", x1=100, x2=100, y1=0, y2=16, class_="zero"),
        tag("rect", x=place(value) - 1, y=1, width=2, height=14, class_="series-0"),
        viewBox="0 0 200 16",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="interval-bar",
    )


def draw_shares(shares: Sequence[float], label: str) -> Markup:
    """Draw parts of a whole side by side: a small chart for a row."""
    begin, parts = 0.0, []
    for series, share in enumerate(shares):
        if share > 0:
            width = round(200 * share, 2)
            parts.append(tag("rect", x=round(begin, 2), y=0, width=width, height=16, class_=f"series-{series}"))
            begin += width
    return tag(
        "svg",
        *parts,
        viewBox="0 0 200 16",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="share-bar",
    )


def draw_legend(names: Sequence[str]) -> Markup:
    """List the names of the series with their colours."""
    swatches = [
        tag("svg", tag("rect", width=10, height=10, class_=f"series-{series}"), viewBox="0 0 10 10", aria_hidden="true")
        for series in range(len(names))
    ]
    items = [tag("li", swatch, name) for swatch, name in zip(swatches, names, strict=True) if name]
    return tag("ul", *items, class_="legend")
