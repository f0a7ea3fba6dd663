"""The importers of ONNX operators, one module per family; to load this registers all of them."""

from importlib import import_module
from pkgutil import iter_modules

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
