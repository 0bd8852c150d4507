"""The order of the project, which no single file tests: where tests stand, what an import loads, what a wheel holds."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from palimpsest.memory.recording.archive_frames import Begin, pack, plain_policy
from palimpsest.settings.policy import Policy

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "proxy" / "palimpsest"

# About more than one file, so there is none that they could mirror.
WHOLE = {
    "test_benchmarks.py",
    "test_clients.py",
    "test_deploy.py",
    "test_endure.py",
    "test_every_option.py",
    "test_growth.py",
    "test_house.py",
    "test_isolation.py",
    "test_monitoring.py",
    "test_network.py",
    "test_paper_presets.py",
    "test_postgres.py",
    "test_documents.py",
    "test_recorded.py",
    "test_tutorial.py",
}
WHOLE_FOLDERS = {"clients", "contract", "faults", "traces"}

# Slow or greedy to import (litellm takes 2 s and would ask the network for prices), so only who needs them pays.
LATE = (
    *("litellm", "fastembed", "onnx", "onnxruntime", "tokenizers", "huggingface_hub"),
    *(
        "opentelemetry",
        "palimpsest.edge.admin.routes",
        "requests",
        "openai",
        "anthropic",
        "httpx",
        "scipy",
        "matplotlib",
        "palimpsest.evaluation",
    ),
)

# What a default policy leaves off, and what other commands, the admin API or a process beside the server do.
OFF = (
    *("features.assist", "features.facts", "features.gaps", "features.items", "features.transfer"),
    *("features.mcp.endpoint", "features.mcp.tools", "features.mcp.server"),
    *("console.offline", "console.terminal", "telemetry.tracing.opentelemetry"),
    *("core.writing", "core.consolidation", "core.facts.statements", "core.recall.keys", "core.recall.probes"),
    *("core.recall.reinforcement", "core.archive.retention"),
    *("store.knowledge", "store.engine.postgres", "memory.embedding.fetch", "core.recall.query_plan"),
    *("upstream.via_litellm", "upstream.litellm_library", "upstream.litellm_bridge", "upstream.via_litellm"),
    *("store.turns.requests", "store.turns.answers", "core.recall.trail"),
    *("upstream.traced", "memory.erasure.retiring", "memory.recording.archive_writer", "memory.recall.indexing"),
    *("core.overflow.selection", "wire.trimming", "memory.request.compactions", "wire.own_compaction"),
    *("core.facts.choice", "core.block.fact_lines", "edge.provider_state", "edge.opened_answer"),
    *("edge.socket", "edge.tunnel", "edge.open_turns"),
    *(
        "memory.recording.memory_spans",
        "upstream.listing",
        "store.engine.sqlite.copying",
        "store.search.derived",
        "settings.describe",
        "settings.prices",
        "memory.operation.key_service",
        "memory.operation.switch_service",
        "core.archive.tombstones",
        "store.turns.tombstones",
        "store.turns.stats",
        "store.turns.branch_writing",
        "core.prefix_rebuild",
        "memory.recording.batch",
        "store.engine.sqlite.known_tables",
        "store.schema",
        "store.engine.sqlite.snapshot",
    ),
)

MOST_LINES = 32_000  # of our code that a default server imports: what it never runs costs its start, and memory

DEFAULT_SERVER = """
import sys, palimpsest.__main__
from palimpsest.app import create_app
from palimpsest.commands import cli, serving
from palimpsest.settings.policy import Policy
cli.parse(["serve"])
create_app(Policy(data="."), {}, archives_apart=True)
sys.stdout.write(" ".join(name.removeprefix("palimpsest.") for name in sys.modules if name.startswith("palimpsest.")))
"""

PASS_THROUGH = """
import asyncio, sys
from pathlib import Path
from palimpsest.app import create_app
from palimpsest.settings.policy import MemoryPolicy, Policy

async def start():
    said = []
    async def receive():
        return {"type": "lifespan.shutdown" if said else "lifespan.startup"}
    async def send(message):
        said.append(message["type"])
    await create_app(Policy(data=Path(), memory=MemoryPolicy(mode="off")), {})({"type": "lifespan"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"], said

asyncio.run(start())
sys.stdout.write(" ".join(module for module in LATE if module in sys.modules))
"""


def run(program: str, *, path: Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PALIMPSEST_")}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"PYTHONPATH": str(path)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def is_mirror(test: Path) -> bool:
    """`test_lineage.py` and `test_lineage_properties.py` are both about `lineage.py`."""
    words = test.stem.split("_")[1:]
    names = ("_".join(words[:count]) for count in range(1, len(words) + 1))
    return any((PACKAGE / test.parent / f"{name}.py").is_file() for name in names)


def test_every_test_file_mirrors_a_source_file() -> None:
    assert not is_mirror(Path("core/test_nowhere.py"))
    tests = [file.relative_to(ROOT / "tests") for file in (ROOT / "tests").rglob("test_*.py")]
    strays = [
        str(test)
        for test in tests
        if test.name not in WHOLE and test.parts[0] not in WHOLE_FOLDERS and not is_mirror(test)
    ]
    assert len(tests) > len(WHOLE)
    assert strays == []


parse = cache(ast.parse)  # the files of a tree that several tests look through


def module_docstring(file: Path) -> str:
    return ast.get_docstring(parse(file.read_text())) or ""


def test_every_source_file_begins_with_what_it_is() -> None:
    files = [file for file in (PACKAGE).rglob("*.py") if file.read_text().strip()]
    assert [str(file.relative_to(ROOT)) for file in files if not module_docstring(file)] == []
    questions = [file for file in files if "?" in module_docstring(file).partition("\n\n")[0]]
    assert [str(file.relative_to(ROOT)) for file in questions] == [], "a docstring begins with a noun, not a question"


def forgotten_tasks(source: str) -> list[int]:
    """Lines that start a task and keep no hold of it; it may vanish in mid-work, and its failure is never seen."""
    return [
        statement.lineno
        for statement in ast.walk(parse(source))
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) in ("asyncio.create_task", "asyncio.ensure_future", "loop.create_task")
    ]


def test_no_task_is_fired_and_forgotten() -> None:
    assert forgotten_tasks("held = asyncio.create_task(x())\nasyncio.create_task(x())") == [2]
    assert {f.name: lines for f in (PACKAGE).rglob("*.py") if (lines := forgotten_tasks(f.read_text()))} == {}


# Files of their own that no palimpsest reads: the caches of the benchmarks, and a baseline's index. The program
# that keeps databases of earlier versions for tests asks them what they hold.
OTHER_DATABASES = {"evaluation/model.py", "evaluation/vectors.py", "evaluation/baselines/lantern.py"}
SQL = re.compile(
    r"\s*(SELECT\s|INSERT (OR \w+ )?INTO\s|UPDATE \w+ SET\s|DELETE FROM\s|WITH (RECURSIVE )?\w+(\(.*\))? AS\s"
    r"|(CREATE|DROP|ALTER) (UNIQUE |VIRTUAL )?(TABLE|INDEX|TRIGGER|VIEW)\s|PRAGMA\s|BEGIN IMMEDIATE|VACUUM\b)"
)


# What one database has and others do not; statements use the names of `store/engine/dialect.py` for it.
OF_ONE_DATABASE = re.compile(
    r"\b(?:json_\w+|ifnull|iif|rowid|zeroblob|group_concat|strftime|last_insert_rowid|total_changes|sqlite_\w+|pragma_\w+"
    r"|INDEXED BY|CROSS JOIN|INSERT OR|UPDATE OR|PRAGMA|MATCH|GLOB|AS BLOB)\b|\b(?:max|min)\([^()]+,|\bchar\(0\)"
    r"|\bIS (?:NOT )?(?!NULL|NOT|DISTINCT)"
)


def strings_in(source: str) -> list[ast.Constant]:
    """Strings, and the parts of those with fields; no docstrings."""
    tree = parse(source)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]


def sql_in(source: str) -> list[int]:
    """Lines on which a string begins that is SQL."""
    return [node.lineno for node in strings_in(source) if SQL.match(str(node.value))]


def test_sql_stands_in_the_store_only() -> None:
    assert sql_in('"""SELECT a docstring."""\nx = f"SELECT {y} FROM t"\nz = "Select one"\n') == [2]
    files = [file for folder in ("proxy", "scripts") for file in (ROOT / folder).rglob("*.py")]
    copying = {ROOT / "scripts" / "scale.py", PACKAGE / "evaluation" / "rows.py"}  # rows, for measurements
    others = {PACKAGE / name for name in OTHER_DATABASES} | copying
    strays = {
        str(file.relative_to(ROOT)): lines
        for file in files
        if PACKAGE / "store" not in file.parents and file not in others and (lines := sql_in(file.read_text()))
    }
    assert strays == {}
    assert all(sql_in(file.read_text()) for file in others)


def test_statements_are_those_of_no_single_database() -> None:
    assert OF_ONE_DATABASE.search("SELECT max(a, b)") and OF_ONE_DATABASE.search("WHERE a IS NOT b.c")
    assert not OF_ONE_DATABASE.search("SELECT max(a) FROM t WHERE a IS NOT NULL AND b IS NOT DISTINCT FROM ?")
    store = PACKAGE / "store"
    strays = {
        f"{file.relative_to(store)}:{node.lineno}": found[0]
        for file in store.rglob("*.py")
        if store / "engine" not in file.parents
        for node in strings_in(file.read_text())
        if (found := OF_ONE_DATABASE.search(str(node.value)))
    }
    assert strays == {}


MOST_ROOMS, MOST_ARROWS = 20, 110  # at the top: what fits on a page, and is a tree rather than a net


def test_the_top_of_the_tree_fits_on_a_page() -> None:
    rooms = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in PACKAGE.rglob("*.py")} - {"__init__"}
    arrows = {
        (file.relative_to(PACKAGE).parts[0].removesuffix(".py"), name.partition(".")[0])
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "palimpsest"
        for name in ([node.module.partition(".")[2]] if "." in node.module else [one.name for one in node.names])
    }
    arrows = {(room, used) for room, used in arrows if room != used and used in rooms and room in rooms}
    assert len(rooms) <= MOST_ROOMS and len(arrows) <= MOST_ARROWS, (len(rooms), len(arrows))
    assert len(rooms) > 10 and len(arrows) > 50


@pytest.mark.parametrize("module", ["palimpsest.app", "palimpsest.commands.serving", "palimpsest.commands.cli"])
def test_importing_loads_nothing_slow(module: str) -> None:
    program = f"import sys, {module}\nsys.stdout.write(' '.join(m for m in {LATE!r} if m in sys.modules))"
    assert run(program, path=ROOT / "proxy", cwd=ROOT) == ""


def test_the_archive_process_takes_what_it_goes_by_without_importing_pydantic() -> None:
    """It starts with each server, and again where it died; a third of its start would go into reading settings."""
    begin = pack(Begin(plain_policy(Policy(data=Path("data"))), b"secret"))
    look = "sys.stdout.write(str(sorted({'pydantic', 'yaml'} & set(sys.modules))))"
    program = "import sys\nfrom palimpsest.memory.recording import archive_frames, archive_worker\n"
    assert run(f"{program}archive_frames.unpack({begin!r})\n{look}", path=ROOT / "proxy", cwd=ROOT) == "[]"


def test_starting_a_pass_through_loads_nothing_slow(tmp_path: Path) -> None:
    assert run(f"LATE = {LATE!r}\n{PASS_THROUGH}", path=ROOT / "proxy", cwd=tmp_path) == ""


def test_a_default_server_imports_nothing_that_is_off(tmp_path: Path) -> None:
    imported = run(DEFAULT_SERVER, path=ROOT / "proxy", cwd=tmp_path).split()
    assert {"pipeline", "memory.service", "store.journal"} <= {*imported}
    assert [name for name in imported if any(f"{name}.".startswith(f"{off}.") for off in OFF)] == []
    commands = [name for name in imported if name.startswith("commands.")]
    assert {*commands} <= {f"commands.{name}" for name in ("base_urls", "cli", "own_address", "serving")}
    parts = [PACKAGE / name.replace(".", "/") for name in imported]
    files = [part / "__init__.py" if part.is_dir() else part.with_suffix(".py") for part in parts]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    assert MOST_LINES / 2 < lines <= MOST_LINES


def test_all_that_is_off_is_there_to_be_imported() -> None:
    parts = [PACKAGE / name.replace(".", "/") for name in OFF]
    assert [str(part) for part in parts if not (part.is_dir() or part.with_suffix(".py").is_file())] == []


@pytest.mark.parametrize(
    "script",
    [
        f"scripts/{name}"
        for name in ("serve", "test", "check", "lint", "install", "clients", "real-model", "settings", "image")
    ],
)
def test_scripts_are_executable_and_parse(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


@pytest.mark.parametrize(("taken", "status"), [(19, 0), (18, 1)])
def test_a_folder_with_too_few_of_its_branches_taken_fails_the_coverage(taken: int, status: int) -> None:
    def files(folder: str, *branches: tuple[int, int]) -> dict[str, object]:
        named = (f"proxy/palimpsest/{folder}/{number}.py" for number in range(len(branches)))
        summaries = ({"num_branches": there, "covered_branches": taken} for there, taken in branches)
        return {name: {"summary": summary} for name, summary in zip(named, summaries, strict=True)}

    measured = {"files": files("core", (12, 12), (8, taken - 12)) | files("wire", (100, 100)) | files("edge", (9, 0))}
    command = [sys.executable, str(ROOT / "scripts" / "branches.py"), "95", "core", "wire"]
    ran = subprocess.run(command, input=json.dumps(measured), capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (status, "")
    assert (
        f"proxy/palimpsest/core: {taken * 5}.0 % of the branches" in ran.stdout
        and "proxy/palimpsest/wire: 100.0 %" in ran.stdout
    )


FAKE_PYTHON = """#!/usr/bin/env bash
echo "${0##*/} $*" >>"$FAKE_LOG"
[[ $* == *"$FAKE_LACKS"* ]] && exit 1
[[ $* == *"pip install"*" uv" ]] && cp "$0" "${0%/*}/uv"
[[ $1 == -m && $2 == venv ]] && mkdir -p "${@: -1}/bin" && cp "$0" "${@: -1}/bin/python"
exit 0
"""


class FreshMachine:
    """A checkout, and a Python of which only its command line is real; `lacks`: what it cannot do."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin, self.log, self.lacks = folder / "checkout", folder / "bin", folder / "log", "nothing"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copy(ROOT / "pyproject.toml", self.root)
        self.bin.mkdir()
        for name in ("python", "python3", *(f"python3.{minor}" for minor in range(11, 20))):
            (self.bin / name).write_text(FAKE_PYTHON)
            (self.bin / name).chmod(0o755)

    def install(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "FAKE_LOG": str(self.log), "FAKE_LACKS": self.lacks}
        script = [str(self.root / "scripts" / "install"), *arguments]
        return subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)

    def installed(self) -> list[str]:
        """The installations of the project: the program, and what it was told."""
        return [line for line in self.log.read_text().splitlines() if "pip install" in line and line[-3:] != " uv"]


@pytest.fixture
def machine(tmp_path: Path) -> FreshMachine:
    if any(Path(folder, "uv").exists() for folder in ("/usr/bin", "/bin")):
        pytest.skip("uv is installed for everyone here, and goes before pip")
    return FreshMachine(tmp_path)


def test_install_happens_once_until_the_project_changes(machine: FreshMachine) -> None:
    assert machine.install().returncode == 0
    machine.install()
    assert [line.split()[-1] for line in machine.installed()] == [str(machine.root)]
    machine.install("dev")
    machine.install("dev")
    machine.install()
    assert machine.installed()[1:] == [machine.installed()[0] + "[dev]"]
    with (machine.root / "pyproject.toml").open("a") as project:
        project.write("# newer\n")
    machine.install()
    assert machine.installed()[2:] == [machine.installed()[1]], "what development takes stays in"


def test_install_that_failed_is_tried_again(machine: FreshMachine) -> None:
    machine.lacks = "pip install"
    assert machine.install().returncode != 0
    machine.lacks = "nothing"
    assert machine.install().returncode == 0
    assert machine.installed()[-1].endswith(f"--editable {machine.root}")


def test_install_does_without_the_preferred_versions_where_they_cannot_be_had(machine: FreshMachine) -> None:
    machine.lacks = "--constraint"
    assert machine.install().returncode == 0
    assert ["--constraint" in line for line in machine.installed()] == [True, True, False]


@pytest.mark.parametrize(
    ("lacking", "installers"), [("nothing", ["uv"]), (" uv", ["python"]), ("--python", ["uv", "python"])]
)
def test_pip_installs_what_uv_cannot(machine: FreshMachine, lacking: str, installers: list[str]) -> None:
    machine.lacks = lacking
    assert machine.install().returncode == 0
    assert [line.split()[0] for line in machine.installed()] == installers
    assert all("--constraint" in line for line in machine.installed())


def test_the_preferred_versions_are_what_the_project_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "scripts" / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    for text in (*project["dependencies"], *project["optional-dependencies"]["dev"]):
        wanted = Requirement(text)
        assert pins[canonicalize_name(wanted.name)] in wanted.specifier, text


def test_what_is_advised_to_be_installed_is_this_distribution() -> None:
    name = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    told = [*(PACKAGE).rglob("*.py"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    named = {found for file in told for found in re.findall(r"pip install '([\w-]+)\[", file.read_text())}
    assert named == {name} == {"palimpsest-proxy"}  # `palimpsest` is another project of the package index


def test_the_image_is_built_from_exact_versions() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    (named,) = [line.partition("=")[2] for line in lines if line.startswith("ARG PYTHON=")]
    assert set(bases) == {"${PYTHON}"} and re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", named)
    (installer,) = [line.partition("=")[2] for line in lines if line.startswith("ARG UV=")]
    assert re.fullmatch(r"\d+\.\d+\.\d+", installer)
    installs = [line for line in lines if "pip install" in line and not line.endswith(" uv==${UV}")]
    assert installs and all("--constraint constraints.txt" in line for line in installs)


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        ("ensurepip", "cannot make environments. On Debian or Ubuntu: sudo apt install python3-venv"),
        (
            "version_info",
            "Python 3.11 or newer is needed and was not found. On Debian or Ubuntu: sudo apt install python3",
        ),
    ],
)
def test_install_names_the_package_that_a_fresh_machine_lacks(machine: FreshMachine, lacks: str, words: str) -> None:
    machine.lacks = lacks
    done = machine.install()
    assert done.returncode != 0
    assert words in done.stderr
    assert not (machine.root / ".venv").exists()


@pytest.mark.slow
def test_a_wheel_holds_the_configuration_and_finds_it(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; sys.stdout.write(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
        names = set(archive.namelist())
    assert {f"palimpsest/config/{file.name}" for file in (ROOT / "config").glob("*.yaml")} <= names
    assert not any(name.startswith(("tests/", "config/")) or "deploy" in name for name in names)
    program = (
        "import sys; from pathlib import Path; from palimpsest.settings.load import load, shipped\n"
        "policy = load([Path('personal')], {}, {})\n"
        "sys.stdout.write(f\"{shipped('default.yaml')} {policy.tenants.static}\")"
    )
    said = run(program, path=installed, cwd=tmp_path)
    assert said == f"{installed / 'palimpsest' / 'config' / 'default.yaml'} me"
    assert not any(name.startswith("palimpsest/evaluation/") for name in names)
    benched = subprocess.run(
        [sys.executable, "-m", "palimpsest", "bench", "recall", "DATA"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (benched.returncode, "in a checkout of it: pip install -e '.[bench]'" in benched.stderr) == (2, True)
