"""The report of a measurement: as a table, as JSON and as a picture, each with what is needed to repeat it."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from palimpsest import __version__
from palimpsest.console.terminal import safe
from palimpsest.domain.errors import PolicyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIBRARIES = ("numpy", "onnxruntime")  # whose versions could change a figure
PICTURE_INCHES = (9.0, 5.0)
PICTURE_DPI = 150
PICTURES = (".svg", ".png")
ERR = Console(stderr=True)  # one for all bars: they make room for each other


@dataclass(frozen=True, slots=True)
class Table:
    """One row a system or a setting. Shares print with three decimals, None as a dash."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | int | None]]


@dataclass(frozen=True, slots=True)
class Report:
    """
    One measurement.

    `data` are the results as JSON values, under the keys that the benchmark promises; `notes` what a reader must know;
    `draw` fills the picture.
    """

    title: str
    data: Mapping[str, Any]
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    draw: Callable[[Figure], None] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def show(self, console: Console) -> None:
        """Print the tables and notes."""
        console.print(safe(self.title))
        for table in self.tables:
            shown = RichTable(*table.columns, title=table.title, title_justify="left")
            for row in table.rows:
                shown.add_row(*(safe(_cell(value)) for value in row))
            console.print(shown)
        for note in self.notes:
            console.print(safe(note))
        console.print(safe(", ".join(f"{name} {value}" for name, value in _flat(self.provenance))))

    def to_json(self) -> str:
        told = {"title": self.title, **self.data, "notes": list(self.notes), "provenance": dict(self.provenance)}
        return json.dumps(told, indent=2, ensure_ascii=False) + "\n"

    def plot(self, file: Path) -> None:
        """
        Draw the picture of the report into a file.

        Raises:
            PolicyError: there is nothing to draw, the file's ending is unknown, or matplotlib is missing.
        """
        if self.draw is None:
            raise PolicyError(f"--plot {file}: this benchmark draws nothing")
        figure = ready_to_plot(file)(figsize=PICTURE_INCHES, layout="constrained")
        self.draw(figure)
        figure.savefig(file, dpi=PICTURE_DPI)


def ready_to_plot(file: Path) -> type[Figure]:
    """
    Matplotlib's `Figure` class, once it is clear that a picture can be drawn into the file.

    Raises:
        PolicyError: the file's ending is unknown, or matplotlib is missing.
    """
    if file.suffix not in PICTURES:
        raise PolicyError(f"--plot {file}: must end in {' or '.join(PICTURES)}")
    try:
        from matplotlib.figure import Figure  # no pyplot: nothing here needs a window
    except ImportError as cause:
        raise PolicyError("--plot: matplotlib is missing; in a checkout: pip install -e '.[bench]'") from cause
    return Figure


def bars(figure: Figure, title: str, groups: Sequence[str], heights: Mapping[str, Sequence[float]]) -> None:
    """
    Draw shares side by side.

    Args:
        groups: along the x axis.
        heights: of each series, one for each group, 0..1.
    """
    axes = figure.subplots()
    width = 0.8 / max(len(heights), 1)
    for at, (name, values) in enumerate(heights.items()):
        axes.bar([place + at * width for place in range(len(groups))], values, width, label=name)
    axes.set_xticks([place + (len(heights) - 1) * width / 2 for place in range(len(groups))], groups)
    axes.set_ylim(0, 1)
    axes.set_title(title)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


def lines(figure: Figure, across: tuple[str, str], up: str, rows: Sequence[Mapping[str, Any]], *names: str) -> None:
    """
    Draw shares as curves.

    Args:
        across: what stands along the x axis: its key in each row, and in words.
        up: what the shares are of; "": each curve says so itself.
        names: of the curves, keys of the rows, 0..1.
    """
    axes = figure.subplots()
    for name in names:
        axes.plot([row[across[0]] for row in rows], [row[name] for row in rows], marker="o", label=name)
    axes.set_ylim(0, 1)
    axes.set_xlabel(across[1])
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def provenance(seed: int) -> dict[str, Any]:
    """The versions, machine and commit that a measurement needs to be repeated."""
    return {
        "command": shlex.join(["palimpsest", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "commit": _commit(),
        "versions": {
            "palimpsest": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in LIBRARIES},
        },
        "cores": os.cpu_count(),
    }


def progress() -> Progress:
    """A progress bar on standard error; silent where that is no terminal."""
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal)


def _commit() -> str:
    """The commit of the checkout, "-dirty" where it was changed since; "": none."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12", "--match="]
    with suppress(OSError):
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return ""


def _cell(value: str | float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def _flat(told: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        pair
        for name, value in told.items()
        for pair in (value.items() if isinstance(value, Mapping) else [(name, value)])
    ]
