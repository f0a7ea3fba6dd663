"""Fetches the headless browser that tests the operator's page, and unpacks it into `.browser`.

It comes from the npm registry, as the package `@sparticuz/chromium` (MIT): a headless Chromium
without a window system, with the libraries and a font that a bare machine lacks. The package's
bytes must have the SHA-512 below, whoever serves them. What was unpacked stays, so that only the
first run needs the network. Usage: `python -m scripts.browser`, or `make browser`.
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

PACKAGE = "@sparticuz/chromium@153.0.0"
SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="

FOLDER = Path(__file__).resolve().parent.parent / ".browser"
EXECUTABLE = FOLDER / "chromium"
LIBRARIES = FOLDER / "lib"
FONT_CONFIGURATION = FOLDER / "fonts.conf"

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


def fetch(folder: Path) -> bytes:
    """The package as the registry's own client brings it, checked."""
    if shutil.which("npm") is None:
        raise SystemExit("privet: no 'npm' found, which fetches the browser for the page's test")
    command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tgz")
    data = archive.read_bytes()
    found = base64.b64encode(hashlib.sha512(data).digest()).decode()
    if found != SHA512:
        raise SystemExit(f"privet: {PACKAGE} has SHA-512 {found}, not the pinned {SHA512}")
    return data


def unpack(package: bytes, target: Path) -> None:
    """Writes the executable, its libraries and its fonts into `target`."""
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for name in ("al2023", "fonts"):
            inner = io.BytesIO(_packed(archive, f"{name}.tar.br"))
            with tarfile.open(fileobj=inner) as part:
                part.extractall(target, filter="data")
        fonts = _FONTS.format(cache=FOLDER / "fonts" / "cache")
        (target / FONT_CONFIGURATION.name).write_text(fonts)
        executable = target / EXECUTABLE.name
        executable.write_bytes(_packed(archive, "chromium.br"))
        executable.chmod(0o755)


def _packed(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"package/bin/{name}")
    assert member is not None, name
    content: bytes = brotli.decompress(member.read())
    return content


def main() -> int:
    """Leaves a browser in `.browser`; quick if one of this version is there."""
    stamp = FOLDER / "version"
    if stamp.exists() and stamp.read_text() == SHA512:
        return 0
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        package = fetch(Path(scratch))
    unpack(package, FOLDER)
    stamp.write_text(SHA512)
    print(f"Ready: {EXECUTABLE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
