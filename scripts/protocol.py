"""Makes the Python module of the Open Inference Protocol's messages from its `.proto` file.

`python -m scripts.protocol` writes it; with `--check` it only tells whether the files are what they
would be (exit code 1 if not). The messages get a pool of their own: Triton's client library brings
messages of the same names, and one process may well use both.
"""

from __future__ import annotations

import re
import sys
import tempfile
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python"
PROTO = "privet/gateway/oip/predict.proto"
MADE = ("privet/gateway/oip/predict_pb2.py", "privet/gateway/oip/predict_pb2.pyi")


def generate() -> dict[str, str]:
    """The text of each file, by its path below the Python sources."""
    from grpc_tools import protoc

    library = resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        options = [f"-I{SOURCES}", f"-I{library}", f"--python_out={folder}", f"--pyi_out={folder}"]
        code = protoc.main(["protoc", *options, str(SOURCES / PROTO)])
        if code != 0:
            raise SystemExit(f"protoc failed with exit code {code}")
        return {name: _amended((Path(folder) / name).read_text()) for name in MADE}


def _amended(text: str) -> str:
    """With a pool of its own; of the stub, without what nobody asks the messages for."""
    text = re.sub(r"^ +(__slots__|\w+_FIELD_NUMBER).*\n", "", text, flags=re.MULTILINE)
    return text.replace("_descriptor_pool.Default()", "_descriptor_pool.DescriptorPool()")


def stale() -> list[str]:
    """The files that are not what they would be."""
    return [
        name
        for name, text in generate().items()
        if not (SOURCES / name).exists() or (SOURCES / name).read_text() != text
    ]


def main() -> int:
    """Writes the files, or checks them."""
    if "--check" in sys.argv[1:]:
        outdated = stale()
        for name in outdated:
            print(f"{name} is not made from {PROTO}: run python -m scripts.protocol")
        return 1 if outdated else 0
    for name, text in generate().items():
        (SOURCES / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
