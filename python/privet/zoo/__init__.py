"""The zoo: the models of the papers, rebuilt as ONNX files from their published layers.

`build` writes a model with seeded random weights; two small models are trained and committed.
"""

from .catalog import CatalogEntry, build, describe, names, trained
from .table import table
