"""The image and the manifests in config/deploy: commands, settings, ports and endpoints that they name exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from palimpsest import __version__
from palimpsest.app import OWN_PATHS
from palimpsest.commands.cli import parse
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError
from palimpsest.memory.service import DRAIN_SECONDS
from palimpsest.settings.load import load, read_yaml
from palimpsest.settings.policy import ListenPolicy, Policy

from scripts import image_root
from tests.running import ROOT
from tests.servers import PROGRAMS, Server

DEPLOY = ROOT / "config" / "deploy"
CHART = DEPLOY / "helm" / "palimpsest"
TEMPLATES = sorted((CHART / "templates").glob("*.yaml"))
PLAIN = sorted(file for file in DEPLOY.rglob("*.yaml") if file not in TEMPLATES)
UNIT = DEPLOY / "palimpsest.service"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
STATEFUL_SET = DEPLOY / "kustomize" / "base" / "statefulset.yaml"
SIDECAR = DEPLOY / "kustomize" / "sidecar" / "sidecar.yaml"
USER_ID = 10001
PORT = ListenPolicy().port
COMMIT_BOUND_SECONDS = DRAIN_SECONDS  # after the streams, for the journal


def manifest(file: Path) -> Json:
    text = file.read_text()
    return read(text if file not in TEMPLATES else with_values(text))


def read(text: str) -> Json:
    parsed: Json = yaml.safe_load(text)
    return parsed


def with_values(template: str) -> str:
    """
    A template as YAML of the same outline: lines that only steer are left out, and any other value is `x`.

    Nothing is rendered here: this shows the parts of a template that do not depend on values.
    """
    kept = [line for line in template.splitlines() if not line.strip().startswith("{{")]
    return "\n".join(re.sub(r"\{\{.*?\}\}", "x", line) for line in kept)


def pod(file: Path) -> Json:
    spec: Json = manifest(file)["spec"]["template"]["spec"]
    return spec


def container(file: Path) -> Json:
    spec = pod(file)
    (found,) = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    return dict(found)


PODS = [STATEFUL_SET, SIDECAR, CHART / "templates" / "statefulset.yaml"]
ALL_PODS = pytest.mark.parametrize("file", PODS, ids=["service", "sidecar", "chart"])


def variables(file: Path) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(file)["env"]}


def image_variables() -> dict[str, str]:
    block = re.search(r"^ENV ((?:.*\\\n)*.*)$", DOCKERFILE, re.M)
    assert block
    words = (word.partition("=") for word in shlex.split(block[1].replace("\\\n", " ")))
    return {name: value for name, _, value in words if name.startswith("PALIMPSEST_")}


def instruction(name: str) -> list[str]:
    """The words of the last CMD in JSON form, or of that of a HEALTHCHECK."""
    found = re.findall(rf"^{name}\b.*?(\[.*\])$", DOCKERFILE, re.M)
    words: list[str] = json.loads(found[-1])
    return words


def policy_in(file: Path, **more: str) -> Policy:
    """The policy of the image with the variables of a manifest; refuses what is no setting."""
    told = {name: value for name, value in variables(file).items() if name != "PALIMPSEST_CONFIG"}
    return load(None, image_variables() | told | more, {})


@pytest.mark.parametrize("file", PLAIN, ids=lambda file: str(file.relative_to(DEPLOY)))
def test_every_manifest_is_yaml_without_a_key_twice(file: Path) -> None:
    assert read_yaml(file)


def command_lines() -> Iterator[list[str]]:
    yield instruction("CMD")
    yield instruction("HEALTHCHECK")
    for file in PODS:
        yield container(file)["args"]
        yield from (each["exec"]["command"] for each in probes(file).values() if "exec" in each)
    (started,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.M)
    program, *words = shlex.split(started)
    yield [Path(program).name, *words]


def probes(file: Path) -> dict[str, Json]:
    return {name: probe for name, probe in container(file).items() if name.endswith("Probe")}


def test_every_command_line_is_one_that_the_program_takes() -> None:
    lines = list(command_lines())
    assert len(lines) >= 7
    for program, *arguments in lines:
        assert program == "palimpsest"
        assert callable(parse(arguments).handler)
    with pytest.raises(SystemExit):
        parse(["serve", "--no-such-flag"])


@ALL_PODS
def test_every_variable_is_a_setting(file: Path) -> None:
    assert policy_in(file).data == Path("/data/memory")
    composed = read_yaml(DEPLOY / "compose.yaml")["services"]["palimpsest"]["environment"]
    assert load(None, dict.fromkeys(composed, ""), {})
    unit = re.findall(r"^Environment=(.*)$", UNIT.read_text(), re.M)
    told = dict(word.split("=", 1) for line in unit for word in shlex.split(line))
    assert load(None, told, {}).data == Path("/var/lib/palimpsest")


def test_the_port_is_the_default_everywhere() -> None:
    assert re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.M) == [str(PORT)]
    (published,) = read_yaml(DEPLOY / "compose.yaml")["services"]["palimpsest"]["ports"]
    assert published == f"127.0.0.1:{PORT}:{PORT}"
    (served,) = read_yaml(DEPLOY / "kustomize" / "base" / "service.yaml")["spec"]["ports"]
    assert served["port"] == PORT == read_yaml(CHART / "values.yaml")["service"]["port"]
    for file in (STATEFUL_SET, CHART / "templates" / "statefulset.yaml"):
        assert container(file)["ports"] == [{"name": "http", "containerPort": PORT}]
    for file in DEPLOY.rglob("*"):
        named = re.findall(r"http://(?:127\.0\.0\.1|palimpsest):(\d+)", file.read_text() if file.is_file() else "")
        assert set(named) <= {str(PORT)}, file


@ALL_PODS
def test_probes_ask_endpoints_that_exist_and_reach_the_address(file: Path) -> None:
    asked = probes(file)
    assert {"startupProbe", "livenessProbe"} <= asked.keys()
    listens_everywhere = policy_in(file).listen.host == "0.0.0.0"
    for probe in asked.values():
        assert ("httpGet" in probe) == listens_everywhere, "the kubelet is outside of the pod"
        if http := probe.get("httpGet"):
            path, _, query = http["path"].partition("?")
            assert path in OWN_PATHS and query in ("", "exclude=store") and http["port"] == "http"
            assert {"name": "Host", "value": "localhost"} in http["httpHeaders"]  # `listen.allowed_hosts` lets it in
    if ready := asked.get("readinessProbe"):
        assert ready["httpGet"]["path"] == "/readyz?exclude=store"


def test_a_sidecar_starts_first_and_its_memory_never_makes_the_application_unready() -> None:
    sidecar = container(SIDECAR)
    assert "containers" not in pod(SIDECAR) and sidecar["restartPolicy"] == "Always"
    assert "readinessProbe" not in sidecar
    assert policy_in(SIDECAR).listen.is_loopback


@ALL_PODS
def test_pods_run_without_any_privilege(file: Path) -> None:
    spec, allowed = pod(file), container(file)["securityContext"]
    profile = allowed.get("seccompProfile") or spec["securityContext"]["seccompProfile"]
    assert profile == {"type": "RuntimeDefault"}
    assert allowed["runAsNonRoot"] is allowed["readOnlyRootFilesystem"] is True
    assert allowed["allowPrivilegeEscalation"] is False and allowed["capabilities"] == {"drop": ["ALL"]}
    assert allowed["runAsUser"] == allowed["runAsGroup"] == USER_ID
    assert f"\nUSER {USER_ID}:{USER_ID}\n" in DOCKERFILE and f"--uid {USER_ID}" in DOCKERFILE


@ALL_PODS
def test_what_is_written_has_a_volume(file: Path) -> None:
    mounted = {each["mountPath"]: each["name"] for each in container(file)["volumeMounts"]}
    assert {"/data", "/tmp"} <= mounted.keys() and policy_in(file).data.is_relative_to("/data")
    claims = manifest(file)["spec"].get("volumeClaimTemplates", ())
    assert set(mounted.values()) == {
        *(each["name"] for each in pod(file)["volumes"]),
        *(each["metadata"]["name"] for each in claims),
    }


@ALL_PODS
def test_the_variables_of_a_service_do_not_reach_the_settings(file: Path) -> None:
    assert pod(file)["enableServiceLinks"] is False
    with pytest.raises(PolicyError, match="PALIMPSEST_"):
        policy_in(file, PALIMPSEST_PORT="tcp://10.0.0.1:8484", PALIMPSEST_SERVICE_HOST="10.0.0.1")


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_a_stop_has_time_for_its_drain_its_streams_and_its_journal() -> None:
    def needed(listen: ListenPolicy) -> float:
        return listen.drain_seconds + listen.shutdown_seconds + COMMIT_BOUND_SECONDS

    values = read_yaml(CHART / "values.yaml")
    composed = read_yaml(DEPLOY / "compose.yaml")["services"]["palimpsest"]
    (unit,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.M)
    assert pod(STATEFUL_SET)["terminationGracePeriodSeconds"] >= needed(policy_in(STATEFUL_SET).listen)
    assert values["terminationGracePeriodSeconds"] >= needed(Policy.model_validate(values["settings"]).listen)
    assert seconds(composed["stop_grace_period"]) >= needed(ListenPolicy())
    assert int(unit) >= needed(ListenPolicy())


def test_a_composed_container_runs_without_any_privilege() -> None:
    composed = read_yaml(DEPLOY / "compose.yaml")["services"]["palimpsest"]
    assert composed["read_only"] is True and composed["tmpfs"] == ["/tmp"]
    assert composed["cap_drop"] == ["ALL"] and composed["security_opt"] == ["no-new-privileges:true"]
    assert (DEPLOY / "compose.yaml").parent.joinpath(composed["build"], "Dockerfile").is_file()


def test_the_charts_values_fit_their_schema_and_are_settings() -> None:
    schema, values = json.loads((CHART / "values.schema.json").read_text()), read_yaml(CHART / "values.yaml")
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values, schema)
    assert values.keys() == schema["properties"].keys() - {"global"}
    wrong: list[Any] = [{"replicas": 2}, {"service": {"port": "http"}}, {"settings": {"listen": {"port": 1}}}]
    for change in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values | change, schema)


def test_the_charts_templates_use_every_value_and_no_other() -> None:
    text = "\n".join(file.read_text() for file in TEMPLATES)
    used = {tuple(path.split(".")) for path in re.findall(r"\.Values\.([\w.]+)", text)}
    for path in used:
        node: Any = read_yaml(CHART / "values.yaml")
        for part in path:
            assert part in node, path
            node = node[part]
    assert {path[0] for path in used} == read_yaml(CHART / "values.yaml").keys()
    assert text.count("{{") == text.count("}}") and len(re.findall(r"\{\{-? (?:with|if|range)\b", text)) == text.count(
        "{{- end }}"
    )


def test_the_chart_is_of_this_version() -> None:
    assert read_yaml(CHART / "Chart.yaml")["appVersion"] == __version__


def test_the_chart_and_the_base_run_the_same_container() -> None:
    base, chart = container(STATEFUL_SET), container(CHART / "templates" / "statefulset.yaml")
    same = ("args", "ports", "startupProbe", "livenessProbe", "readinessProbe", "securityContext")
    assert {name: base[name] for name in same} == {name: chart[name] for name in same}


def test_a_wheel_takes_every_preset_the_plugins_and_no_manifest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    taken = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert set(taken) == {f"config/{file.name}" for file in (ROOT / "config").glob("*.yaml")} | {"config/plugins"}


# In a process of its own: what renders is Helm itself, a Go library with threads and signals of its own.
RENDER = """
import json, sys, helm_python
chart, values = helm_python.Chart.load(sys.argv[1]), json.loads(sys.argv[2])
try:
    chart.validate_schema(values)
except helm_python.HelmValuesError as refused:
    sys.exit(f"refused: {refused}")
json.dump([*chart.render(values, name="palimpsest").values()], sys.stdout)
"""


def rendered(values: Json) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("helm_python")
    command = [sys.executable, "-c", RENDER, str(CHART), json.dumps(values)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version()
IMAGE = {"image": {"repository": "registry.example/palimpsest"}}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize(
    "values",
    [
        IMAGE,
        IMAGE | {"settings": {"memory": {"reach": "user"}}, "envFrom": [{"secretRef": {"name": "keys"}}]},
    ],
    ids=["defaults", "settings and secrets"],
)
def test_helm_renders_the_chart_to_what_kubernetes_takes(values: Json, version: str) -> None:
    done = rendered(values)
    assert done.returncode == 0, done.stderr
    objects = [each for text in json.loads(done.stdout) for each in yaml.safe_load_all(text) if each]
    assert {"Service", "StatefulSet"} <= {each["kind"] for each in objects}
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


def test_helm_refuses_values_that_the_chart_does_not_have() -> None:
    done = rendered(IMAGE | {"replicas": 2})
    assert done.returncode == 1 and "refused" in done.stderr and "'replicas' not allowed" in done.stderr


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("folder", ["base", "example", "replicas"])
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, which needs no cluster for this")
def test_a_kustomization_builds_what_kubernetes_takes(folder: str, version: str) -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / "kustomize" / folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    objects = list(yaml.safe_load_all(built))
    assert objects
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, which needs no cluster for this")
def test_replicas_are_the_base_on_one_database_with_one_secret() -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / "kustomize" / "replicas")]
    built = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    objects = {each["kind"]: each for each in yaml.safe_load_all(built)}
    spec = objects["StatefulSet"]["spec"]
    (proxy,) = spec["template"]["spec"]["containers"]
    told = {each["name"]: each.get("value", "postgresql://me@db/memory") for each in proxy["env"]}
    assert spec["replicas"] == 3 and load(None, told, {}).store.url and "PALIMPSEST_SECRET" in told
    mounted = {each["mountPath"]: each["name"] for each in proxy["volumeMounts"]}
    assert Path(told["PALIMPSEST_STORE__PASSWORD_FILE"]).parent in map(Path, mounted)
    labels = spec["template"]["metadata"]["labels"]
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_composed_replicas_are_the_composed_proxy_on_one_database_with_one_secret() -> None:
    one = read_yaml(DEPLOY / "compose.yaml")["services"]["palimpsest"]
    composed = read_yaml(DEPLOY / "compose.replicas.yaml")
    services = composed["services"]
    many = services["palimpsest"]
    same = ("build", "read_only", "tmpfs", "cap_drop", "security_opt", "stop_grace_period")
    assert {name: one[name] for name in same} == {name: many[name] for name in same}
    assert many["deploy"] == {"replicas": 3} and one["environment"].items() <= many["environment"].items()
    policy = load(None, many["environment"] | dict.fromkeys(one["environment"], ""), {})
    assert "database" in services and "@database:5432/" in policy.store.url
    secret = policy.store.password_file
    assert secret is not None and secret.name in composed["secrets"] and secret.name in many["secrets"]
    assert services["database"]["environment"]["POSTGRES_PASSWORD_FILE"] == str(secret)
    assert set(composed["volumes"]) == {"database"} and "ports" not in many
    assert "postgres]" in DOCKERFILE  # the image has the driver


@pytest.mark.slow
def test_the_composed_database_belongs_to_a_user_who_is_no_superuser(server: Server, tmp_path: Path) -> None:
    script = read_yaml(DEPLOY / "compose.replicas.yaml")["configs"]["owner"]["content"].replace("$$", "$")
    (tmp_path / "database").write_text("secret")
    script = script.replace("/run/secrets/database", str(tmp_path / "database"))
    script = re.sub(r"\bpalimpsest\b", "composed", script)  # the server has a user of that name
    where = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-e", "-c", script], env=where, check=True, timeout=60)
    asked = "SELECT rolsuper FROM pg_roles JOIN pg_database ON datdba = pg_roles.oid WHERE datname = 'composed'"
    assert server.rows(server.url("composed"), asked) == [(False,)]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, which needs no cluster for this")
def test_the_sidecar_joins_any_deployment() -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / "kustomize" / "example")]
    built = read(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    spec = built["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["initContainers"]] == ["palimpsest"]
    assert [each["name"] for each in spec["containers"]] == ["application"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path) -> None:
    def complaints(text: str) -> str:
        unit = tmp_path / "palimpsest.service"
        unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.M))
        verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
        return "\n".join(
            line
            for line in subprocess.run(verify, capture_output=True, text=True, timeout=60).stderr.splitlines()
            if unit.name in line
        )

    assert complaints(UNIT.read_text()) == ""
    assert "NoSuchKey" in complaints(UNIT.read_text().replace("UMask=", "NoSuchKey="))


def test_the_build_without_an_engine_knows_every_instruction_of_the_dockerfile() -> None:
    words = {word for word, _ in image_root.instructions(DOCKERFILE)}
    assert {"FROM", "RUN", "COPY", "USER", "CMD"} <= words
    assert not [word for word in words - {"FROM", "ARG"} if not hasattr(image_root.Build, f"_{word.lower()}")]


def test_the_build_without_an_engine_sees_what_dockerignore_lets_in(tmp_path: Path) -> None:
    image_root.context_of(ROOT, tmp_path)
    copied = [rest.split()[:-1] for word, rest in image_root.instructions(DOCKERFILE) if word == "COPY"]
    taken = [name for names in copied if not names[0].startswith("--from") for name in names]
    assert len(taken) > 3 and all((tmp_path / name).exists() for name in taken)
    assert not (tmp_path / "tests").exists()


def test_the_socket_unit_opens_the_default_address() -> None:
    (address,) = re.findall(r"^ListenStream=(.*)$", UNIT.with_suffix(".socket").read_text(), re.M)
    assert address == f"{ListenPolicy().host}:{PORT}"


def test_the_unit_runs_without_any_privilege() -> None:
    lines = set(UNIT.read_text().splitlines())
    assert {"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="} <= lines
    assert {"StateDirectory=palimpsest", "StateDirectoryMode=0700", "KillMode=mixed"} <= lines


def test_one_person_in_a_container_is_let_in_by_a_key_alone_and_has_one_memory() -> None:
    services = read_yaml(DEPLOY / "compose.home.yaml")["services"]
    told = {name: "k3y" for name in services["palimpsest"]["environment"] if not name.startswith("PALIMPSEST_")}
    policy = load([DEPLOY / "home.yaml"], image_variables() | told, {})
    assert not policy.listen.is_loopback and policy.memory.reach == "tenant"
    assert [key.key_env for key in policy.tenants.keys] == ["MEMORY_KEY"]
    assert services["open-webui"]["environment"]["OPENAI_API_KEY"] == "${MEMORY_KEY}"
    with pytest.raises(PolicyError, match="MEMORY_KEY"):
        load([DEPLOY / "home.yaml"], image_variables(), {})
    with pytest.raises(PolicyError, match=r"docs/containers\.md"):
        load([Path("personal")], image_variables(), {})
    assert load([Path("personal")], image_variables() | {"PALIMPSEST_TENANTS__REQUIRE_KEY": "true"}, {})
