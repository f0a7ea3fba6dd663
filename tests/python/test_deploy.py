"""Files for containers, clusters and systemd fit each other and the commands that they name.

No container engine runs here, and no cluster has read these files; `make image-check` builds the
image and serves in it.
"""

from __future__ import annotations

import http.server
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from privet.cli import configuration
from privet.cli.commands import COMMANDS

DEPLOY = Path(__file__).parents[2] / "deploy"
CONFIG = DEPLOY / "privet.toml"
SERVE = configuration.defaults(COMMANDS["serve"].load("serve"), "serve", CONFIG)
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def check_words(words: list[str]) -> None:
    """Fails if these are no words of a command that takes the file of configuration."""
    name, *rest = words
    command = COMMANDS[name].load(name)
    options = {option for parameter in command.params for option in parameter.opts}
    assert set(rest[::2]) <= options, words
    assert configuration.defaults(command, name, CONFIG)


def health() -> dict[str, str]:
    """What tells whether a program is well, as Python: what the configuration says of its ports."""
    ports = {
        name: int(
            configuration.defaults(COMMANDS[name].load(name), name, CONFIG)[key].split(":")[1]
        )
        for name, key in (("serve", "probe"), ("gateway", "listen"), ("dealer", "listen"))
    }
    return {
        "server": f"http://127.0.0.1:{ports['serve']}/v2/health/ready",
        "gateway": f"http://127.0.0.1:{ports['gateway']}/v2/health/live",
        "dealer": f"('127.0.0.1', {ports['dealer']})",
    }


def compose() -> dict[str, Any]:
    """The services of the compose file."""
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


@pytest.mark.parametrize("name", ["server", "dealer", "gateway"])
def test_compose_starts_commands_that_are_confined(name: str) -> None:
    service = compose()[name]
    check_words(service["command"])
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    # What is mounted is what the configuration names, and all but state is read-only.
    for volume in service["volumes"]:
        assert volume.endswith(":ro") or volume.split(":")[1] == SERVE["state"]
    way, program, option, code = service["healthcheck"]["test"]
    assert (way, program, option) == ("CMD", "python", "-c")
    assert health()[name] in code
    assert compose()["application"]["network_mode"] == "service:gateway"


def test_the_cluster_probes_what_the_service_listens_on() -> None:
    state, service = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    (container,) = state["spec"]["template"]["spec"]["containers"]
    check_words(container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["control"] == int(SERVE["listen"].rpartition(":")[2])
    assert ports["data"] == SERVE["first_port"]
    assert ports["probe"] == int(SERVE["probe"].rpartition(":")[2])
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        target = container[probe]["httpGet"]
        assert (target["port"], target["path"].startswith("/v2/health/")) == ("probe", True)
    assert container["securityContext"]["readOnlyRootFilesystem"]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {SERVE["keys"], SERVE["models"], SERVE["state"]} <= mounts
    assert {port["name"] for port in service["spec"]["ports"]} == {"control", "data"}
    # There is one worker for the one core. While the service drains, its clients still reach it.
    assert container["resources"]["limits"]["cpu"] == "1"
    assert service["spec"]["publishNotReadyAddresses"]


def test_the_image_runs_as_nobody_and_names_a_command() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert "USER 10001" in lines
    check_words(yaml.safe_load(next(line for line in lines if line.startswith("CMD"))[4:]))


def checks() -> list[str]:
    """The Python of the image's health checks, the first of which that succeeds says it is well."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    (line,) = (entry for entry in text.splitlines() if entry.startswith("HEALTHCHECK"))
    *commands, last = (part.strip() for part in line.partition(" CMD ")[2].split("||"))
    assert last == "exit 1"
    return [shlex.split(command)[2] for command in commands]


def test_the_image_checks_the_health_of_each_program() -> None:
    server, gateway, dealer = checks()
    assert health()["server"] in server
    assert health()["gateway"] in gateway
    assert health()["dealer"] in dealer


@pytest.mark.parametrize("code", checks(), ids=["server", "gateway", "dealer"])
def test_a_health_check_tells_who_is_well(code: str) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Well) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        script = re.sub(r"9480|8000|7401", str(listener.server_port), code)
        try:
            assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
            if "http" in code:  # a service that is not ready answers 503
                broken = script.replace("health", "away")
                process = subprocess.run(
                    [sys.executable, "-c", broken], capture_output=True, check=False
                )
                assert process.returncode != 0
        finally:
            listener.shutdown()
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert process.returncode != 0


class Well(http.server.BaseHTTPRequestHandler):
    """Answers as a program that is well."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path.startswith("/v2/health/") else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_understood_and_name_commands(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    assert "LimitCORE=1" in lines  # see `keep_no_core`
    start = next(line for line in lines if line.startswith("ExecStart="))
    check_words(start.split()[1:])
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    process = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    # The program and its manual are not installed here.
    others = [
        line
        for line in process.stderr.splitlines()
        if line.startswith(unit.name) and "not executable" not in line and "man " not in line
    ]
    assert not others


@pytest.mark.slow
@pytest.mark.go
def test_the_chart_is_understood_and_names_commands(tmp_path: Path) -> None:
    """Helm's linter and Kubernetes' types in Go; then what is rendered against the commands."""
    process = subprocess.run(
        ["go", "test", "-count=1", "./..."],
        cwd=DEPLOY / "helm" / "check",
        env=os.environ | {"PRIVET_RENDERED": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    commands = set()
    for rendered in sorted(tmp_path.glob("*.yaml")):
        objects = [document for document in yaml.safe_load_all(rendered.read_text()) if document]
        (settings,) = [entry["data"] for entry in objects if entry["kind"] == "ConfigMap"]
        file = tmp_path / f"{rendered.stem}.toml"
        file.write_text(settings["privet.toml"])
        for resource in objects:
            if resource["kind"] in ("Deployment", "StatefulSet"):
                container = resource["spec"]["template"]["spec"]["containers"][0]
                name, *_ = container["args"]
                check_words(container["args"])
                # What the programs themselves make of their tables.
                assert configuration.defaults(COMMANDS[name].load(name), name, file)
                commands.add(name)
    assert commands == {"serve", "dealer", "gateway"}
