"""Runs digits.mlir on its 360 held-out images at batch 1, 7 and 360: one compile, NumPy's accuracy.

    python docs/examples/digits.py [--target cpu]

The images are from "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak
(UCI Machine Learning Repository, 1998, CC BY 4.0).
"""

import argparse
from pathlib import Path

import numpy as np

import stepwell

HERE = Path(__file__).parent


def numpy_digits(x, w1, b1, w2, b2, w3, b3):
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    return (h @ w3 + b3).argmax(axis=-1)


def main():
    parser = argparse.ArgumentParser(description="Classify 360 held-out digits with digits.mlir.")
    parser.add_argument("--target", help="cuda, cpu or reference (default: the best one here)")
    options = parser.parse_args()

    data = np.load(HERE / "digits.npz")
    images, labels = data["images"], data["labels"]
    weights = [data[name] for name in ("w1", "b1", "w2", "b2", "w3", "b3")]
    target = {"target": options.target} if options.target else {}
    f = stepwell.compile(HERE / "digits.mlir", **target)

    accuracy = np.mean(numpy_digits(images, *weights) == labels)
    print(f"NumPy       accuracy {accuracy:.4f}")
    move, back = (lambda a: a), np.asarray
    if f.target == "cuda":  # nothing is copied to a device silently: the program says so
        import cupy

        move, back = cupy.asarray, cupy.asnumpy
        weights = [move(w) for w in weights]
    same = True
    for batch in (1, 7, len(images)):
        batches = [images[i : i + batch] for i in range(0, len(images), batch)]
        found = np.mean(np.concatenate([back(f(move(x), *weights)) for x in batches]) == labels)
        print(f"batch {batch:>3}   accuracy {found:.4f}")
        same = same and found == accuracy
    print(f"compiled {f.stats.compilations} time(s)")
    return 0 if same and f.stats.compilations == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
