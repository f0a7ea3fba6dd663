"""Checks the wheel that `make wheel` built: small, whole, and for whom its name says.

`python -m scripts.wheel FOLDER` fails unless FOLDER holds one such wheel. The tag of its platform
is checked by auditwheel, which reads the versions of symbols that the wheel takes from the system.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

MOST_BYTES = 16 << 20
"""Of the wheel; 12 MB were measured."""
PARTS = ("_native.abi3.so", "privet-ckks", "privet-ckks.wasm", "privet-ckks.js")


def problems(wheel: Path) -> list[str]:
    """What is wrong with a wheel; nothing if all is well."""
    faults = []
    if wheel.stat().st_size > MOST_BYTES:
        faults.append(f"it has {wheel.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    names = {name.rpartition("/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    faults += [f"{part} is not in it" for part in PARTS if part not in names]
    _, _, _, interface, platform = wheel.stem.split("-")
    if interface != "abi3":
        faults.append(f"its extension is for {interface}, not for the stable interface abi3")
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    audit = " ".join(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    )
    if f'platform tag: "{platform}"' not in audit:
        faults.append(f"its tag says {platform}, and auditwheel says: {audit}")
    return faults


def main() -> None:
    """Fails with what is wrong."""
    wheels = list(Path(sys.argv[1]).glob("privet-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{sys.argv[1]} needs to hold one wheel of privet, and holds {len(wheels)}")
    if faults := problems(wheels[0]):
        sys.exit(f"{wheels[0]}: " + "; ".join(faults))
    print(f"{wheels[0]}: {wheels[0].stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
