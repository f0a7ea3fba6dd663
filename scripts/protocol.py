"""Makes the Python module of the Open Inference Protocol's messages from its `.proto` file.

`python -m scripts.protocol` writes it; with `--check` it only tells whether the module is what it
would be (exit code 1 if not). The messages get a pool of their own: Triton's client library brings
messages of the same names, and one process may well use both.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python"
PROTO = "privet/gateway/oip/predict.proto"
MODULE = SOURCES / "privet/gateway/oip/predict_pb2.py"


def generate() -> str:
    """The text of the module, with a pool of its own."""
    from grpc_tools import protoc

    library = resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        options = [f"-I{SOURCES}", f"-I{library}", f"--python_out={folder}"]
        code = protoc.main(["protoc", *options, str(SOURCES / PROTO)])
        if code != 0:
            raise SystemExit(f"protoc failed with exit code {code}")
        text = (Path(folder) / MODULE.relative_to(SOURCES)).read_text()
    return text.replace("_descriptor_pool.Default()", "_descriptor_pool.DescriptorPool()")


def is_stale() -> bool:
    """Whether the module is not what it would be."""
    return not MODULE.exists() or MODULE.read_text() != generate()


def main() -> int:
    """Writes the module, or checks it."""
    if "--check" not in sys.argv[1:]:
        MODULE.write_text(generate())
    elif is_stale():
        print(f"{MODULE.name} is not made from {PROTO}: run python -m scripts.protocol")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
