"""A bank's forest decides on a loan; the applicant's data stay with the applicant.

Both parties run on this machine. The forest is trained on made-up applicants here.
"""

import numpy as np
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier

import privet

rng = np.random.default_rng(1)
income, debt, years = rng.uniform(20, 120, 500), rng.uniform(0, 90, 500), rng.uniform(0, 30, 500)
applicants = np.stack([income, debt, years], axis=1).astype(np.float32)
repaid = income + years > debt + rng.normal(20, 5, 500)
forest = RandomForestClassifier(n_estimators=20, max_depth=4, random_state=1)
forest.fit(applicants, repaid.astype(int))

# The bank sends the program's public half: how many trees there are and how deep, and no threshold.
plain = to_onnx(forest, applicants[:1], target_opset={"": 17, "ai.onnx.ml": 3})
bank = privet.compile(plain, batch=3, reveal="label")

result = privet.run(bank, {"X": applicants[:3]})
labels = next(iter(result.outputs.values()))
print("granted:", ", ".join("yes" if label else "no" for label in labels))
print(f"material {result.offline.seconds:.2f} s, answer {result.online.seconds:.2f} s")
assert np.array_equal(labels, forest.predict(applicants[:3]))
