"""Exports small ensembles with the tools that people use: `python make.py` writes the files here.

It needs scikit-learn, skl2onnx, lightgbm, xgboost, catboost and onnxmltools, which Privet does not;
the files here were written with versions 1.9.1, 1.20.0, 4.7.0, 3.2.0, 1.2.10 and 1.16.0. Those of
histogram boosting are of versions 1.5.2 and 1.18.0 with protobuf 4.25.9 and onnx 1.16.2: skl2onnx
gives booleans as integers, which protobuf 7 refuses ("Expected an int, got a boolean").
"""

from __future__ import annotations

from pathlib import Path

import catboost
import lightgbm
import numpy as np
import onnx
import xgboost
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from sklearn import ensemble
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).parent
ROWS = 60
DATA = {
    "two": load_breast_cancer(return_X_y=True),
    "many": load_iris(return_X_y=True),
    "number": load_diabetes(return_X_y=True),
}
SOME = {"random_state": 0, "n_estimators": 5}
MODELS = {
    "tree_many": DecisionTreeClassifier(random_state=0),
    "forest_two": ensemble.RandomForestClassifier(max_depth=4, **SOME),
    "forest_many": ensemble.RandomForestClassifier(**SOME),
    "forest_number": ensemble.RandomForestRegressor(max_depth=4, **SOME),
    "extra_many": ensemble.ExtraTreesClassifier(max_depth=5, **SOME),
    "boosting_two": ensemble.GradientBoostingClassifier(**SOME),
    "boosting_many": ensemble.GradientBoostingClassifier(**SOME),
    "boosting_number": ensemble.GradientBoostingRegressor(**SOME),
    "hist_two": ensemble.HistGradientBoostingClassifier(max_iter=5),
    "hist_many": ensemble.HistGradientBoostingClassifier(max_iter=5),
    "hist_number": ensemble.HistGradientBoostingRegressor(max_iter=5),
    "lightgbm_two": lightgbm.LGBMClassifier(n_estimators=5, num_leaves=20, verbose=-1),
    "lightgbm_many": lightgbm.LGBMClassifier(n_estimators=5, num_leaves=6, verbose=-1),
    "lightgbm_number": lightgbm.LGBMRegressor(n_estimators=5, num_leaves=12, verbose=-1),
    "xgboost_two": xgboost.XGBClassifier(n_estimators=5, max_depth=4),
    "xgboost_many": xgboost.XGBClassifier(n_estimators=5, max_depth=4),
    "xgboost_number": xgboost.XGBRegressor(n_estimators=5, max_depth=4),
    "catboost_number": catboost.CatBoostRegressor(n_estimators=5, depth=4, verbose=False),
    "catboost_many": catboost.CatBoostClassifier(n_estimators=5, depth=3, verbose=False),
    "catboost_two": catboost.CatBoostClassifier(n_estimators=5, depth=3, verbose=False),
}


def write(name: str) -> None:
    """Trains a model and exports it."""
    x, y = DATA[name.split("_")[1]]
    model = MODELS[name].fit(x.astype(np.float32), y)
    kinds = [("x", FloatTensorType([None, x.shape[1]]))]
    path = HERE / f"{name}.onnx"
    if name.startswith("catboost"):
        model.save_model(str(path), format="onnx")
        return
    if name.startswith("lightgbm"):
        options = {} if name.endswith("number") else {"zipmap": False}
        proto = convert_lightgbm(model, initial_types=kinds, target_opset=15, **options)
    elif name.startswith("xgboost"):
        proto = convert_xgboost(model, initial_types=kinds, target_opset=15)
    else:
        proto = to_onnx(
            model,
            x[:1].astype(np.float32),
            options=None if name.endswith("number") else {"zipmap": False},
            target_opset={"": 17, "ai.onnx.ml": 3},
        )
    onnx.save(proto, path)


if __name__ == "__main__":
    for name in MODELS:
        write(name)
    rows = {f"x_{kind}": x[:: len(x) // ROWS].astype(np.float32) for kind, (x, _) in DATA.items()}
    np.savez_compressed(HERE / "rows.npz", **rows)
