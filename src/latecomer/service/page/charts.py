"""Charts as inline SVG: shapes alone, stretched to the page; numbers and names stand beside them as text.

Colours come from the style sheet by class (`series-0` …), so that one chart serves light and dark. Every chart has a
table behind it.
"""

from collections.abc import Sequence

from latecomer.service.page.markup import Markup, join, tag

WIDTH, HEIGHT = 600, 160
SERIES = 9
"""Colours of the style sheet."""


def draw_figure(
    title: str,
    shapes: Sequence[Markup],
    *,
    key: str,
    top: str,
    ends: tuple[str, str],
    label: str,
    table: Markup | None = None,
) -> Markup:
    """Frame a chart: its title, the value at its top, the ends of its x axis, and its table.

    `key` is an id of its own on the page; `label` says in a sentence what the chart shows. Charts that follow one
    another may share the table of the last.
    """
    drawing = tag(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        focusable="false",
    )
    return tag(
        "figure",
        tag("figcaption", tag("h4", title), tag("span", top, class_="top")),
        drawing,
        tag("div", tag("span", ends[0]), tag("span", ends[1]), class_="ends", aria_hidden="true"),
        None if table is None else _fold_table(table, key),
    )


def _fold_table(table: Markup, key: str) -> Markup:
    return tag("details", tag("summary", "Numbers", id=f"{key}-summary"), table, id=key)


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


def _draw_run(run: list[str], series: int) -> Markup:
    run = run if len(run) > 1 else [run[0], f"{float(run[0].split(',')[0]) + 2:.2f},{run[0].split(',')[1]}"]
    return tag("polyline", points=" ".join(run), class_=f"line series-{series}")


def draw_interval(low: float, value: float, high: float) -> list[Markup]:
    """Draw an interval around a value, and where 0 is; the axis is symmetric about 0."""
    reach = max(abs(low), abs(high)) * 1.05 or 1.0

    def place(number: float) -> float:
        return round(WIDTH * (0.5 + 0.5 * number / reach), 2)

    middle = HEIGHT / 2
    return [
        tag("line", x1=WIDTH / 2, x2=WIDTH / 2, y1=0, y2=HEIGHT, class_="zero"),
        tag("rect", x=place(low), y=middle - 14, width=max(place(high) - place(low), 2), height=28, class_="interval"),
        tag("rect", x=place(value) - 2, y=middle - 34, width=4, height=68, class_="series-0"),
    ]


def draw_legend(names: Sequence[str]) -> Markup:
    """List the names of the series with their colours."""
    swatches = [
        tag("svg", tag("rect", width=10, height=10, class_=f"series-{series}"), viewBox="0 0 10 10", aria_hidden="true")
        for series in range(len(names))
    ]
    items = [tag("li", swatch, name) for swatch, name in zip(swatches, names, strict=True) if name]
    return tag("ul", *items, class_="legend")


def make_scrollable(table: Markup, label: str) -> Markup:
    """Let a wide table scroll by itself, with the keyboard too."""
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label=label)


def make_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Make a table with a caption; the first column names its row."""
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
        tag("tbody", join(body)),
    )
    return make_scrollable(table, caption)
