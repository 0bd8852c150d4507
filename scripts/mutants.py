"""
Mutation testing of core/ and wire/: which small faults in the code do their tests not notice?

    scripts/mutants [--sample N] [--seed N] [PATH ...]

A mutant is one file with one fault: a comparison, a constant, an operator, a condition or a result is another one. Each
is met by the tests that mirror its file, and by those of core/, wire/ and contract/ that import it. Prints the mutants
that live through these; status 1 where more than a quarter of the sample do.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "proxy" / "palimpsest"
ROOMS = ("core", "wire")
TESTS = [*(ROOT / "tests" / room for room in ROOMS), ROOT / "tests" / "contract"]
SAMPLE = 150
MOST_SURVIVORS = 0.25
TIMEOUT_SECONDS = 300  # a mutant that does not end is noticed
ENV = "PALIMPSEST_MUTANT"  # the file and the number of a mutant, for the process that runs its tests
SWAPPED: dict[type[ast.AST], Callable[[], ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
}

Change = Callable[[], None]


def faults(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Change]]:
    """Every fault that can be put into a tree: its place, in words, and what puts it there. Always in one order."""
    passed = {id(inner) for node in ast.walk(tree) for part in _unmeant(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in passed:
            continue
        if isinstance(node, ast.Compare):
            for at, op in enumerate(node.ops):
                yield _swap(node, op, lambda new, node=node, at=at: node.ops.__setitem__(at, new))
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPPED:
            yield _swap(node, node.op, lambda new, node=node: setattr(node, "op", new))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            turned = ast.UnaryOp(ast.Not(), node.test)
            yield node, "the condition is turned", lambda node=node, turned=turned: setattr(node, "test", turned)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            new = not node.value if isinstance(node.value, bool) else node.value + 1
            yield node, f"{node.value} is {new}", lambda node=node, new=new: setattr(node, "value", new)
        elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
            yield node, "the result is None", lambda node=node: setattr(node, "value", ast.Constant(None))


def _unmeant(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that no test can be about: annotations, and decorators."""
    for name in ("annotation", "returns"):
        if part := getattr(node, name, None):
            yield part
    yield from getattr(node, "decorator_list", ())


def _swap(node: ast.AST, op: ast.AST, put: Callable[[ast.AST], None]) -> tuple[ast.AST, str, Change]:
    new = SWAPPED[type(op)]()
    return node, f"{type(op).__name__} is {type(new).__name__}", lambda: put(new)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class _Mutant(SourceFileLoader):
    """Loads a module with one fault; never from a cache, nor into one."""

    number: int

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text())
        [*faults(tree)][self.number][2]()
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, file: Path, number: int) -> None:
        self.name, self.file, self.number = _module(file), file, number

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = _Mutant(fullname, str(self.file))
        loader.number = self.number
        return spec_from_file_location(fullname, self.file, loader=loader)


def _module(file: Path) -> str:
    return ".".join(("palimpsest", *file.relative_to(SOURCES).with_suffix("").parts))


def tests_of(file: Path) -> list[Path]:
    """The tests that mirror a file first, then what else imports it."""
    mirror = ROOT / "tests" / file.relative_to(SOURCES).parent / f"test_{file.stem}.py"
    importing = [test for folder in TESTS for test in sorted(folder.rglob("test_*.py")) if _imports(test, file)]
    return list(dict.fromkeys([*([mirror] if mirror.exists() else []), *importing]))


def _imports(test: Path, file: Path) -> bool:
    package, _, name = _module(file).rpartition(".")
    text = test.read_text()
    return f"from {package}.{name} import" in text or f"from {package} import {name}" in text


def is_noticed(file: Path, number: int) -> bool:
    """Whether a test fails on a mutant."""
    if not (tests := tests_of(file)):
        return False
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "scripts.mutants", "-m", "not slow", *tests]
    env = os.environ | {ENV: f"{file}:{number}", "PYTHONPATH": f"{ROOT}:{ROOT / 'proxy'}"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help=f"so many of all mutants ({SAMPLE})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="chooses which (1)")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders (core/ and wire/)")
    given = parser.parse_args()
    roots = [path.resolve() for path in given.paths] or [SOURCES / room for room in ROOMS]
    files = [file for root in roots for file in sorted(root.rglob("*.py") if root.is_dir() else [root])]
    every = [(file, number) for file in files for number, _ in enumerate(faults(ast.parse(file.read_text())))]
    sample = sorted(random.Random(given.seed).sample(every, min(given.sample, len(every))))
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (file, number), noticed in zip(sample, pool.map(is_noticed, *zip(*sample, strict=True)), strict=True):
            if not noticed:
                survivors += 1
                node, what, _ = [*faults(ast.parse(file.read_text()))][number]
                print(f"{file.relative_to(ROOT)}:{node.lineno}: {what}", flush=True)  # type: ignore[attr-defined]  # noqa: T201
    print(f"{survivors} of {len(sample)} live, {survivors / len(sample):.0%}; there are {len(every)}")  # noqa: T201
    return int(survivors > MOST_SURVIVORS * len(sample))


if ENV in os.environ:
    path, _, place = os.environ[ENV].rpartition(":")
    sys.meta_path.insert(0, _Finder(Path(path), int(place)))

if __name__ == "__main__":
    sys.exit(main())
