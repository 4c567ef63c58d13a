"""Trains the network of digits.mlir and writes digits.npz: the weights and 360 held-out samples.

    pip install scikit-learn && python docs/examples/digits_train.py

The data are the 8x8 digits that ship with scikit-learn: the test set of "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI Machine Learning Repository, 1998, CC BY 4.0).
A multi-layer perceptron 64 -> 64 -> 32 -> 10 with relu, trained with Adam in NumPy, one fixed seed.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SIZES = (64, 64, 32, 10)
HELD_OUT = 360
EPOCHS = 120
BATCH = 32
RATE = 2e-3
DECAY = 1e-3


def forward(weights, x):
    """The output of every layer, the input first; the last one holds the logits [batch, 10]."""
    layers = [x]
    for i in range(0, len(weights), 2):
        h = layers[-1] @ weights[i] + weights[i + 1]
        layers.append(h if i == len(weights) - 2 else np.maximum(h, 0))
    return layers


def gradients(weights, x, labels):
    """The gradients of the mean cross-entropy, one for each of `weights`."""
    layers = forward(weights, x)
    e = np.exp(layers[-1] - layers[-1].max(axis=1, keepdims=True))
    error = e / e.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    out = []
    for i in reversed(range(len(layers) - 1)):
        out[:0] = [layers[i].T @ error, error.sum(axis=0)]
        error = (error @ weights[2 * i].T) * (layers[i] > 0)
    return out


def train(images, labels, rng):
    """Weights [w1, b1, w2, b2, w3, b3] in f32."""
    weights = []
    for n, m in pairwise(SIZES):
        weights += [rng.normal(0, np.sqrt(2 / n), (n, m)), np.zeros(m)]
    first, second = ([np.zeros_like(w) for w in weights] for _ in range(2))  # Adam's two moments
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS)
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            step += 1
            chosen = order[start : start + BATCH]
            for w, g, m, v in zip(weights, gradients(weights, images[chosen], labels[chosen]), first, second):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                w -= rate * (m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8) + DECAY * w)
    return [w.astype(np.float32) for w in weights]


def main():
    rng = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    order = rng.permutation(len(images))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]

    weights = train(images[rest], labels[rest], rng)
    accuracy = np.mean(forward(weights, images[held_out])[-1].argmax(axis=1) == labels[held_out])
    path = Path(__file__).with_name("digits.npz")
    np.savez_compressed(
        path,
        **dict(zip(("w1", "b1", "w2", "b2", "w3", "b3"), weights)),
        images=images[held_out],
        labels=labels[held_out].astype(np.int64),
    )
    print(f"held-out accuracy {accuracy:.4f}; {path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
