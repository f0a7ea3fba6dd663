"""Asks a gateway for a prediction with nothing but Python's own library.

Usage: python client.py URL MODEL < numbers
"""

import json
import sys
import urllib.request


def call(url, body=None):
    """What a call answers; a POST if there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


url, model = sys.argv[1:]
place = f"{url}/v2/models/{model}"
entry = call(place)["inputs"][0]
shape = [max(size, 1) for size in entry["shape"]]  # -1 is an axis of any length
values = [float(word) for word in sys.stdin.read().split()]
tensor = {"name": entry["name"], "datatype": "FP32", "shape": shape, "data": values}
print(*call(f"{place}/infer", {"inputs": [tensor]})["outputs"][0]["data"])
