"""What a bench has to say, as tables: errors, beside the paper's, as shares of bicubic's, by scene, and their cost."""

from __future__ import annotations

from collections.abc import Callable

from dada.datasets.pair import DEPTH
from dada.evaluation.bench import Report
from dada.evaluation.methods import BICUBIC
from dada.evaluation.metrics import THRESHOLDS, Scores
from dada.evaluation.paper import paper_set, printed
from dada.evaluation.protocol import P1
from dada.evaluation.tables import FAILED, Table, cells, number
from dada.sample import BATCH

LOWER = "Lower is better."
WORDS = {
    "mse": "MSE: mean squared error",
    "rmse": "RMSE: root mean squared error of each image, averaged over images",
    "mae": "MAE: mean absolute error",
}
WEIGHT = {
    "pixels": "Every valid pixel weighs the same.",
    "images": "Every image weighs the same.",
    "batches": f"Averaged as published: over the pixels of {BATCH} crops at a time, then over these batches.",
}

Values = tuple[float, ...]


def screen(report: Report) -> list[Table]:
    """The tables for the screen: details only where one factor leaves room for them."""
    tables = [errors(report), *published(report), shares(report), cost(report)]
    return tables + (details(report) if len(report.factors) == 1 else [])


def everything(report: Report) -> list[Table]:
    """All tables, for files."""
    return [errors(report), *published(report), shares(report), cost(report), *details(report), *by_scene(report)]


def errors(report: Report) -> Table:
    """The protocol's main errors at every factor."""
    names = report.protocol.headline
    words = "; ".join(f"{WORDS[name]}, in {_unit(report, name)}" for name in names)
    grid = _grid(report, lambda label, factor: _pick(report.scores(label, factor), names))
    return _by_factor(
        report, " / ".join(map(str.upper, names)), grid, f"{words}. {WEIGHT[report.protocol.rule]} {LOWER}"
    )


def published(report: Report) -> list[Table]:
    """Errors averaged by the rule of the paper's numbers, beside these; none for other protocols and data."""
    data = beside_paper(report)
    if data is None:
        return []
    grid = _grid(report, lambda label, factor: _pick(report.scores(label, factor, "batches"), ("mse", "mae")))
    beside = _grid(report, lambda label, factor: printed(data, _name(report, label), factor))
    caption = (
        f"MSE (cm²) / MAE (cm). {WEIGHT['batches']} Rows marked paper are printed there, for its own test images of "
        f"{data}: other images than these, unless the data set here is that very split. {LOWER}"
    )
    return [_by_factor(report, "MSE / MAE beside the paper's", grid, caption, beside)]


def shares(report: Report) -> Table:
    """Errors divided by bicubic's: what carries over between scenes."""
    names, data = report.protocol.headline, beside_paper(report)

    def share(label: str, factor: int) -> Values | None:
        mine, plain = report.scores(label, factor), report.scores(BICUBIC, factor)
        return _divide(_pick(mine, names), _pick(plain, names))

    def beside(label: str, factor: int) -> Values | None:
        if data is None:
            return None
        return _divide(printed(data, _name(report, label), factor), printed(data, BICUBIC, factor))

    words = " / ".join(name.upper() for name in names)
    quoted = f" Rows marked paper: the same of its own numbers on {data}." if data else ""
    caption = (
        f"{words} divided by that of bicubic interpolation, which knows nothing of the guide. This share carries over "
        f"between scenes better than the errors themselves.{quoted} {LOWER}"
    )
    return _by_factor(report, f"share of bicubic's {words}", _grid(report, share), caption, _grid(report, beside))


def cost(report: Report) -> Table:
    """Seconds and peak memory of a problem."""

    def text(label: str, factor: int) -> str:
        runs = report.runs[label, factor]
        if runs.seconds is None:
            return FAILED
        memory = "-" if runs.memory is None else f"{runs.memory / 1e6:.0f} MB"
        return f"{runs.seconds:.{3 if runs.seconds < 1 else 1}f} s / {memory}"

    rows = [[c.label, *(text(c.label, factor) for factor in report.factors)] for c in report.entries]
    caption = (
        "Seconds / megabytes of one crop (or whole image), medians over all, on the machine at hand. Memory: by how "
        "much the process grew at its peak during the call, beyond its inputs; - where the system does not tell. "
        "What every method is given is made before and not counted: the source, and its bicubic interpolation."
    )
    headings = ["method", *(f"x{factor}" for factor in report.factors)]
    return Table(_title(report, "time / peak memory"), headings, rows, caption)


def details(report: Report) -> list[Table]:
    """All measures, a table for each factor."""
    unit, limits = report.unit, THRESHOLDS
    columns = {
        f"MSE {unit}²": lambda s: s.mse, f"RMSE {unit}": lambda s: s.rmse, f"MAE {unit}": lambda s: s.mae,
        "MAPE %": lambda s: 100 * s.mape, "value error %": lambda s: 100 * s.value_error,
        "edge error %": lambda s: 100 * s.edge_error, f"MAE near jumps {unit}": lambda s: s.jump_mae,
        "flying %": lambda s: 100 * s.flying_share,
        f"consistency {unit}²": lambda s: s.consistency_mse, f"worst {unit}": lambda s: s.consistency_max,
    }  # fmt: skip
    caption = (
        f"MAPE: mean of error / true value. This project's definitions: value error, share of pixels wrong by more "
        f"than {limits.value:.0%} of the true value; a jump lies where neighbours differ by more than {limits.jump:g} "
        f"standard deviations of the data set; edge error, share of pixels at a jump that are wrong by more than "
        f"{limits.edge:g} standard deviations; near: within {limits.reach} pixels; flying, share of pixels near a jump "
        f"that lie between its two sides, farther than {limits.flying:.0%} of the jump from both. Consistency: mean "
        f"squared and worst absolute difference between the result brought down as its source was, and the source. "
        f"{WEIGHT[report.protocol.rule]} {LOWER}"
    )
    tables = []
    for factor in report.factors:
        found = {c.label: report.scores(c.label, factor) for c in report.entries}
        values = [cells([(read(s),) if s else None for s in found.values()]) for read in columns.values()]  # type: ignore[no-untyped-call]
        rows = [[label, *row] for label, row in zip(found, zip(*values, strict=True), strict=True)]
        tables.append(Table(_title(report, f"all measures at x{factor}"), ["method", *columns], rows, caption))
    return tables


def by_scene(report: Report) -> list[Table]:
    """The main errors of every scene, a table for each factor."""
    names = report.protocol.headline
    words = "; ".join(f"{WORDS[name]}, in {_unit(report, name)}" for name in names)
    labels = [c.label for c in report.entries]
    tables = []
    for factor in report.factors:
        rows = []
        for scene in report.scenes:
            found = [_pick(report.scores(label, factor, scene=scene), names) for label in labels]
            rows.append([scene, *cells(found)])
        title = f"{' / '.join(map(str.upper, names))} of every scene at x{factor}"
        tables.append(Table(_title(report, title), ["scene", *labels], rows, f"{words}. {LOWER}"))
    return tables


def beside_paper(report: Report) -> str | None:
    """Which of the paper's data sets to show: only beside depths that were measured exactly as the paper's."""
    same = report.protocol == P1 and report.quantity == DEPTH
    return paper_set(report.dataset) if same else None


# ---- beneath -----------------------------------------------------------------------------------------------

Grid = list[list[Values | None]]  # by factor, then by entry


def _grid(report: Report, value: Callable[[str, int], Values | None]) -> Grid:
    return [[value(c.label, factor) for c in report.entries] for factor in report.factors]


def _by_factor(report: Report, title: str, grid: Grid, caption: str, beside: Grid | None = None) -> Table:
    """A row for each method and a column for each factor; beneath each row that of the paper, if it has one."""
    columns = [cells(column) for column in grid]
    rows, quoted = [], []
    for i, entry in enumerate(report.entries):
        rows.append([entry.label, *(column[i] for column in columns)])
        theirs = [column[i] for column in beside or []]
        if any(theirs):
            quoted.append(len(rows))
            rows.append([f"{entry.name} (paper)", *(" / ".join(map(number, v)) if v else "-" for v in theirs)])
    headings = ["method", *(f"x{factor}" for factor in report.factors)]
    return Table(_title(report, title), headings, rows, caption, frozenset(quoted))


def _title(report: Report, what: str) -> str:
    return f"{report.dataset}, {report.protocol.describe(report.count)}: {what}"


def _unit(report: Report, name: str) -> str:
    return f"{report.unit}²" if name == "mse" else report.unit


def _pick(scores: Scores | None, names: tuple[str, ...]) -> Values | None:
    return tuple(getattr(scores, name) for name in names) if scores else None


def _divide(values: Values | None, by: Values | None) -> Values | None:
    if values is None or by is None:
        return None
    return tuple(v / b if b else float("nan") for v, b in zip(values, by, strict=True))


def _name(report: Report, label: str) -> str:
    return next(c.name for c in report.entries if c.label == label)
