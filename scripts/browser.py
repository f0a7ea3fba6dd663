"""Fetches the headless browser that tests the pages, and axe, which looks for what keeps people
from using them; both are unpacked into `.browser`.

They come from the npm registry: `@sparticuz/chromium` (MIT), a headless Chromium without a window
system, with the libraries and a font that a bare machine lacks, and `axe-core` (MPL-2.0). A
package's bytes must have the SHA-512 below, whoever serves them. What was unpacked stays, so that
only the first run needs the network. Usage: `python -m scripts.browser`, or `make browser`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import brotli

CHROMIUM = "@sparticuz/chromium@153.0.0"
AXE = "axe-core@4.14.1"
SHA512 = {
    CHROMIUM: (
        "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
    ),
    AXE: "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
}

FOLDER = Path(__file__).resolve().parent.parent / ".browser"
EXECUTABLE = FOLDER / "chromium"
LIBRARIES = FOLDER / "lib"
FONT_CONFIGURATION = FOLDER / "fonts.conf"
AXE_SCRIPT = FOLDER / "axe.min.js"

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


def fetch(name: str, folder: Path) -> bytes:
    """A package as the registry's own client brings it, checked."""
    if shutil.which("npm") is None:
        raise SystemExit("privet: no 'npm' found, which fetches the browser for the page's test")
    command = ["npm", "pack", name, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tgz")
    data = archive.read_bytes()
    archive.unlink()
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    if digest != SHA512[name]:
        raise SystemExit(f"privet: {name} has SHA-512 {digest}, not the pinned {SHA512[name]}")
    return data


def unpack(package: bytes, target: Path) -> None:
    """Writes the executable, its libraries and its fonts into `target`."""
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for name in ("al2023", "fonts"):
            inner = io.BytesIO(_packed(archive, f"bin/{name}.tar.br"))
            with tarfile.open(fileobj=inner) as part:
                part.extractall(target, filter="data")
        fonts = _FONTS.format(cache=FOLDER / "fonts" / "cache")
        (target / FONT_CONFIGURATION.name).write_text(fonts)
        executable = target / EXECUTABLE.name
        executable.write_bytes(_packed(archive, "bin/chromium.br"))
        executable.chmod(0o755)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"package/{name}")
    assert member is not None, name
    return member.read()


def _packed(archive: tarfile.TarFile, name: str) -> bytes:
    content: bytes = brotli.decompress(_member(archive, name))
    return content


def main() -> int:
    """Leaves both in `.browser`; quick if these versions are there."""
    stamp, versions = FOLDER / "version", "\n".join(SHA512.values())
    if stamp.exists() and stamp.read_text() == versions:
        return 0
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        packages = {name: fetch(name, Path(scratch)) for name in SHA512}
    unpack(packages[CHROMIUM], FOLDER)
    with tarfile.open(fileobj=io.BytesIO(packages[AXE])) as archive:
        AXE_SCRIPT.write_bytes(_member(archive, AXE_SCRIPT.name))
    stamp.write_text(versions)
    print(f"Ready: {EXECUTABLE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
