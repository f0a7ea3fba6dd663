"""Builds the image of `deploy/Dockerfile` by buildah and serves a model in it: `make image-check`.

No engine and no registry is needed: the base image is made of this machine's own Python, with a
shell and the few tools that the file calls, under the name that the file asks for. So it shows
that the file builds, and that a server runs from the image as its user, with the configuration of
`deploy`; not what is in the base image of a registry. It wants root and `buildah` on the PATH.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from privet import keys

TOOLS = ("sh", "ls", "cat", "cp", "rm", "install", "useradd", "true")
LIBRARIES = """
dl.so.2 gcc_s.so.1 m.so.6 nss_dns.so.2 nss_files.so.2 pthread.so.0 rt.so.1 stdc++.so.6 util.so.1
"""
"""Of the system, which what is installed may load; without `lib`."""
ETC = ("passwd", "group", "login.defs", "nsswitch.conf", "resolv.conf")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LEFT_OUT = ("__pycache__", "test", "tests", "site-packages", "dist-packages", "config-*")
USER = 10001
ADDRESS = "https://127.0.0.1:7480"
READY_SECONDS = 120.0


class Buildah:
    """The program, with storage of its own that is gone afterwards."""

    def __init__(self, folder: Path) -> None:
        helpers = folder / "helpers"
        helpers.mkdir()
        # Named in the configuration and never run, since containers use the machine's network.
        (helpers / "netavark").symlink_to("/bin/false")
        limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        maxima = {name: resource.getrlimit(kind)[1] for name, kind in limits.items()}
        (folder / "containers.conf").write_text(
            f'[engine]\nhelper_binaries_dir = ["{helpers}"]\n[containers]\n'
            f"default_ulimits = {[f'{name}={limit}:{limit}' for name, limit in maxima.items()]}\n"
        )
        (folder / "registries.conf").write_text('unqualified-search-registries = ["docker.io"]\n')
        (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self._trusting = ("--signature-policy", str(folder / "policy.json"))
        self._environment = os.environ | {
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(folder / "registries.conf"),
        }
        places = ("--root", str(folder / "root"), "--runroot", str(folder / "run"))
        self._command = ("buildah", *places, "--storage-driver", "vfs")

    def _words(self, subcommand: str, *words: object) -> tuple[str, ...]:
        trusting = self._trusting if subcommand in ("build", "commit", "from") else ()
        return (*self._command, subcommand, *trusting, *map(str, words))

    def __call__(self, subcommand: str, *words: object) -> str:
        """What a command prints. Raises `CalledProcessError` if it fails."""
        return subprocess.run(
            self._words(subcommand, *words),
            env=self._environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()

    def start(self, *words: object, quiet: bool = False) -> subprocess.Popen[bytes]:
        """Starts `buildah run` in a process group of its own."""
        output = subprocess.DEVNULL if quiet else None
        return subprocess.Popen(
            self._words("run", *words),
            env=self._environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def add(root: Path, file: str) -> None:
    """Copies a file and the libraries that it loads to the same place under a root."""
    libraries = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
    for path in (file, *(word for word in libraries.split() if word.startswith("/"))):
        place = root / os.path.realpath(Path(path).parent).lstrip("/") / Path(path).name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(path), place)


def make_base(root: Path) -> None:
    """Puts what the base image has into a folder."""
    for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local/bin", "etc/ssl/certs"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "proc", "sys", "dev", "root", "run", "var/lib"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for tool in TOOLS:
        add(root, shutil.which(tool) or sys.exit(f"this machine has no {tool}"))
    library, python = Path(sysconfig.get_path("stdlib")), os.path.realpath(sys.executable)
    local = root / "usr/local"
    ignore = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(library, local / "lib" / library.name, symlinks=True, ignore=ignore)
    for name in ("python", "python3", library.name):
        shutil.copy(python, local / "bin" / name)
    shared = Path(sysconfig.get_config_var("LIBDIR"))
    extensions = (library / "lib-dynload").glob("*.so")
    for path in (python, *extensions, *shared.glob(f"lib{library.name}.so*")):
        add(root, str(path))
    # The interpreter looks beside itself for what this machine may have elsewhere.
    for path in shared.glob(f"lib{library.name}.so*"):
        shutil.copy(path, local / "lib")
    for name in LIBRARIES.split():
        path = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "", f"lib{name}")
        if path.exists():
            add(root, str(path))
    for name in ETC:
        if Path("/etc", name).exists():
            shutil.copy(f"/etc/{name}", root / "etc")
    shutil.copy(CERTIFICATES, root / CERTIFICATES.relative_to("/"))
    (root / "etc/pip.conf").write_text(f"[global]\ncert = {CERTIFICATES}\n")


def build(buildah: Buildah, folder: Path, repository: Path) -> None:
    """Builds the image `privet`."""
    file = repository / "deploy" / "Dockerfile"
    (base,) = {line.split()[1] for line in file.read_text().splitlines() if line[:5] == "FROM "}
    root = folder / "base"
    make_base(root)
    container = buildah("from", "scratch")
    shutil.copytree(root, buildah("mount", container), symlinks=True, dirs_exist_ok=True)
    buildah("umount", container)
    buildah("commit", container, f"docker.io/library/{base}")
    options = ("--pull=never", "--format", "docker", "--file", file, "--tag", "privet")
    buildah("build", *options, repository)


@contextmanager
def serving(buildah: Buildah, folder: Path, repository: Path) -> Iterator[Path]:
    """A container in which the image's own command serves digits, once its health check says that
    it is well; its root."""
    keys.make(folder / "keys")
    model = folder / "models" / "digits" / "1"
    model.mkdir(parents=True)
    shutil.copy(repository / "zoo/models/digits-cnn.onnx", model / "model.onnx")
    (model.parent / "config.toml").write_text("input_range = [0, 1]\n")
    (folder / "state").mkdir()
    folder.chmod(0o711)
    for path in (folder / "state", folder / "keys", *(folder / "keys").iterdir()):
        os.chown(path, USER, USER)
    mounts = {
        folder / "keys": "/etc/privet/keys:ro",
        repository / "deploy/privet.toml": "/etc/privet/privet.toml:ro",
        folder / "models": "/srv/models:ro",
        folder / "state": "/var/lib/privet",
    }
    volumes = [f"--volume={source}:{target}" for source, target in mounts.items()]
    container = buildah("from", "--pull=never", "privet")
    image = json.loads(buildah("inspect", container))["Docker"]["config"]
    process = buildah.start(*volumes, container, "--", *image["Entrypoint"], *image["Cmd"])
    deadline = time.monotonic() + READY_SECONDS
    try:
        check = (container, "--", "sh", "-c", image["Healthcheck"]["Test"][1])
        while buildah.start(*check, quiet=True).wait():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("the server in the container did not become ready")
            time.sleep(1)
        yield Path(buildah("mount", container))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    """Fails with what is wrong."""
    repository = Path(__file__).resolve().parents[1]
    held_out = np.load(repository / "zoo/models/digits-cnn.npz")
    with tempfile.TemporaryDirectory(prefix="privet-image-") as name:
        folder = Path(name)
        buildah = Buildah(folder)
        build(buildah, folder, repository)
        build_time = time.time()
        with serving(buildah, folder, repository) as root:
            np.save(folder / "x.npy", held_out["inputs"][:1])
            options = {"keys": folder / "keys", "state": folder / "own", "input": folder / "x.npy"}
            words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
            command = [
                str(Path(sys.executable).with_name("privet")),
                "infer",
                ADDRESS,
                "digits",
                *words,
                "--json",
            ]
            answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            files = (path for path in root.rglob("*") if path.lstat().st_mtime > build_time)
            strays = sorted(str(path.relative_to(root)) for path in files)
        owners = {path.stat().st_uid for path in (folder / "state").rglob("*")}
    problems = {
        "the answer is wrong": np.argmax(answer["output"]) != held_out["labels"][0],
        f"state belongs to {owners}, not to the image's user": owners != {USER},
        f"files that are in no volume were written: {strays}": bool(strays),
    }
    if any(problems.values()):
        sys.exit("; ".join(problem for problem, is_so in problems.items() if is_so))
    version = ".".join(map(str, sys.version_info[:2]))
    print(f"the image builds on Python {version} and serves; it wrote to its volume alone")


if __name__ == "__main__":
    main()
