"""
Mutation testing of core/ and wire/: small faults in the code that their tests do not notice.

A mutant is one file with one fault: a comparison, a constant, an operator, a condition or a result is another one. Each
is met by the tests that mirror its file, and by those of core/, wire/ and contract/ that import it or, where none
mirrors it, mirror what imports it. Prints the mutants that live through these; status 1 where more than a quarter of
the sample do. The fractions that a module names are left alone: they are weights that were fitted, and benchmarks, not
tests, say what they are worth.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "proxy" / "palimpsest"
ROOMS = ("core", "wire")
FOLDERS = (*ROOMS, "contract")  # of tests
SAMPLE = 150
MOST_SURVIVORS = 0.25
TIMEOUT_SECONDS = 60  # of a test: a mutant that does not end is noticed
PYTEST = (
    f"--timeout={TIMEOUT_SECONDS}",
    "-q",
    "-x",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "-m",
    "not slow",
    "--hypothesis-profile",
    "quick",
)
SWAPPED: dict[type[ast.AST], Callable[[], ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
}


def faults(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Every fault that can be put into a tree: its line, what it is, and what puts it there. Always in one order."""
    untested = {id(inner) for node in ast.walk(tree) for part in _untested(node) for inner in ast.walk(part)}
    for statement in tree.body:  # fitted weights: benchmarks are about these
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            untested |= {id(node) for node in ast.walk(statement) if _is_float(node)}
    for node in ast.walk(tree):
        if id(node) in untested:
            continue
        if isinstance(node, ast.Compare):
            for place, op in enumerate(node.ops):
                new = SWAPPED[type(op)]()
                put = lambda node=node, place=place, new=new: node.ops.__setitem__(place, new)  # noqa: E731
                yield node.lineno, f"{type(op).__name__} is {type(new).__name__}", put
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPPED:
            new = SWAPPED[type(node.op)]()
            what = f"{type(node.op).__name__} is {type(new).__name__}"
            yield node.lineno, what, lambda node=node, new=new: setattr(node, "op", new)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            turned = ast.UnaryOp(ast.Not(), node.test)
            yield node.lineno, "the condition is turned", lambda node=node, new=turned: setattr(node, "test", new)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            yield node.lineno, f"{node.value} is {value}", lambda node=node, new=value: setattr(node, "value", new)
        elif isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
            yield node.lineno, "the result is None", lambda node=node: setattr(node, "value", ast.Constant(None))


def _untested(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that no test can be about: annotations, and decorators."""
    yield from (part for name in ("annotation", "returns") if (part := getattr(node, name, None)))
    yield from getattr(node, "decorator_list", ())


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


class Mutant(SourceFileLoader):
    """Finds and loads one module, with one fault."""

    def __init__(self, file: Path, number: int) -> None:
        super().__init__(_module(file), str(file))
        self._number = number

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text())
        [*faults(tree)][self._number][2]()
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


def _module(file: Path) -> str:
    return ".".join(("palimpsest", *file.relative_to(SOURCES).with_suffix("").parts))


def tests_of(file: Path) -> list[Path]:
    """
    The tests that mirror a file first, then what else imports it. Where none mirrors it, as it is only there for its
    neighbours, also those that mirror a module that imports it; of a file without any test, those of its room.
    """
    package, _, name = _module(file).rpartition(".")

    def imports(text: str) -> bool:
        return f"from {package}.{name} import" in text or f"from {package} import {name}" in text

    mirror = _mirror(file)
    mirrors = [mirror] if mirror.exists() else [_mirror(user) for user in _modules() if imports(user.read_text())]
    tests = [test for folder in FOLDERS for test in sorted((ROOT / "tests" / folder).rglob("test_*.py"))]
    own = [*filter(Path.exists, mirrors), *(test for test in tests if imports(test.read_text()))]
    return list(dict.fromkeys(own or sorted(mirror.parent.rglob("test_*.py"))))


def _mirror(file: Path) -> Path:
    return ROOT / "tests" / file.relative_to(SOURCES).parent / f"test_{file.stem}.py"


@cache
def _modules() -> list[Path]:
    return [file for room in ROOMS for file in sorted((SOURCES / room).rglob("*.py"))]


def start(tests: list[Path], mutant: Mutant | None = None) -> int:
    """Start a process of its own that ends with 0 where no test fails; its id."""
    if child := os.fork():
        return child
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    if mutant:
        sys.meta_path.insert(0, mutant)  # type: ignore[arg-type]
    os._exit(int(pytest.main([*PYTEST, *map(str, tests)])))


def survivors_of(sample: list[tuple[Path, int]]) -> Iterator[tuple[Path, int]]:
    """The mutants that no test notices, as they are found."""
    running: dict[int, tuple[Path, int]] = {}
    left = [mutant for mutant in sample if tests_of(mutant[0])]
    yield from (mutant for mutant in sample if mutant not in left)
    while left or running:
        while left and len(running) < (os.cpu_count() or 1):
            mutant = left.pop(0)
            running[start(tests_of(mutant[0]), Mutant(*mutant))] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        if status == 0:
            yield mutant


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
    # What others have written is loaded once; each mutant's process loads what is ours, with the one fault in it.
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "proxy")]
    importlib.import_module("palimpsest.app")
    for name in [name for name in sys.modules if name.partition(".")[0] == "palimpsest"]:
        del sys.modules[name]
    if os.waitpid(start(sorted({test for file, _ in sample for test in tests_of(file)})), 0)[1]:
        sys.exit("tests fail without any fault: scripts/test tests/core tests/wire tests/contract")
    survivors = 0
    for file, number in survivors_of(sample):
        survivors += 1
        line, what, _ = [*faults(ast.parse(file.read_text()))][number]
        sys.stdout.write(f"{file.relative_to(ROOT)}:{line}: {what}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{survivors} of {len(sample)} live, {survivors / len(sample):.0%}; there are {len(every)}\n")
    return int(survivors > MOST_SURVIVORS * len(sample))


if __name__ == "__main__":
    sys.exit(main())
