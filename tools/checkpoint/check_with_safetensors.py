#!/usr/bin/env python3
"""Reads our files with the reference implementation of safetensors and compares them with what we say they hold.

Not a test of the build, for the library is not part of it. Needs its own environment:

    python3 -m venv /tmp/safetensors && /tmp/safetensors/bin/pip install safetensors numpy
    /tmp/safetensors/bin/python tools/checkpoint/check_with_safetensors.py runs/gpt/step-00000100
    ... --export FILE     a file of `checkpoint export --optimizer` of it, in f32, bf16 or f16
    ... --gpt2 DIR        what `checkpoint convert --to gpt2` made of it

In a checkpoint it compares the tensors of every shard with the index (names, files, total bytes), and with the file
itself as parsed here from its first byte: names, shapes, dtypes, bytes. An export must hold the same tensors, in f32
with the same bytes, else rounded to the nearest. A gpt2 must hold every parameter under some name, four kinds of
weights transposed. Exit code 1 and a line for everything that differs.
"""

import argparse
import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import numpy as np
import safetensors
from safetensors import deserialize, safe_open

problems: List[str] = []


class Tensor(NamedTuple):
    dtype: str
    shape: Tuple[int, ...]
    data: bytes


def check(condition: bool, message: str) -> None:
    if not condition:
        problems.append(message)


def by_library(path: Path) -> Dict[str, Tensor]:
    """The tensors that the library finds in a file. Its numpy interface has no bf16, so tensors are taken as bytes."""
    found = {name: Tensor(item["dtype"], tuple(item["shape"]), bytes(item["data"]))
             for name, item in deserialize(path.read_bytes())}
    with safe_open(path, framework="np") as opened:
        check(set(opened.keys()) == set(found), f"{path}: safe_open and deserialize find other names")
        check((opened.metadata() or {}).get("format") == "pt", f"{path}: metadata has no format pt")
        for name, tensor in found.items():
            part = opened.get_slice(name)
            check(tuple(part.get_shape()) == tensor.shape and part.get_dtype() == tensor.dtype,
                  f"{path}: {name}: safe_open finds {part.get_dtype()}{part.get_shape()}")
            if tensor.dtype == "F32":
                check(opened.get_tensor(name).tobytes() == tensor.data, f"{path}: {name}: get_tensor has other bytes")
    return found


def by_header(path: Path) -> Dict[str, Tensor]:
    """The same, read here from the bytes of the file."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8: 8 + length])
    header.pop("__metadata__", None)
    data = raw[8 + length:]
    return {name: Tensor(item["dtype"], tuple(item["shape"]), data[slice(*item["data_offsets"])])
            for name, item in header.items()}


def check_file(path: Path) -> Dict[str, Tensor]:
    found = by_library(path)
    check(found == by_header(path), f"{path}: the library finds other tensors than the header tells")
    return found


def check_checkpoint(directory: Path) -> Dict[str, Tensor]:
    """All tensors of a checkpoint, by name."""
    checksums = json.loads((directory / "checksums.json").read_text())["files"]
    tensors: Dict[str, Tensor] = {}
    for part in ("model", "optimizer"):
        index = json.loads((directory / f"{part}.safetensors.index.json").read_text())
        files = sorted(set(index["weight_map"].values()))
        total = 0
        for file in files:
            digest = hashlib.sha256((directory / file).read_bytes()).hexdigest()
            check(checksums[file]["sha256"] == digest, f"{file}: checksums.json has another sha256")
            for name, tensor in check_file(directory / file).items():
                check(index["weight_map"].get(name) == file, f"{file}: {name} is not in the index under this file")
                check(tensor.dtype == "F32", f"{file}: {name} is {tensor.dtype}, expected F32")
                check(name not in tensors, f"{name} is there twice")
                tensors[name] = tensor
                total += len(tensor.data)
        for name in index["weight_map"]:
            check(name in tensors, f"{part} index: {name} is in no file")
        check(index["metadata"]["total_size"] == total, f"{part} index: total_size is not {total}")
        print(f"{part}: {len(index['weight_map'])} tensors, {total} bytes in {len(files)} files")
    return tensors


def rounded(data: bytes, dtype: str) -> bytes:
    """f32 to another type by numpy, or for bf16 by the definition of rounding to the nearest, ties to even."""
    if dtype == "F32":
        return data
    values = np.frombuffer(data, "<f4")
    if dtype == "F16":
        return values.astype("<f2").tobytes()
    bits = values.view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def check_export(path: Path, tensors: Dict[str, Tensor]) -> None:
    found = check_file(path)
    check(set(found) == set(tensors), f"{path}: other names: {sorted(set(found) ^ set(tensors))}")
    for name in set(found) & set(tensors):
        check(found[name].shape == tensors[name].shape, f"{path}: {name}: shape {found[name].shape}")
        check(found[name].data == rounded(tensors[name].data, found[name].dtype), f"{path}: {name}: other values")
    print(f"{path}: {len(found)} tensors in {sorted({tensor.dtype for tensor in found.values()})}")


def check_gpt2(directory: Path, tensors: Dict[str, Tensor]) -> None:
    found = check_file(directory / "model.safetensors")
    parameters = {name: tensor for name, tensor in tensors.items()
                  if not name.endswith((".exp_avg", ".exp_avg_sq")) and name != "loss_scaler"}
    unused = {(tensor.shape, tensor.data) for tensor in parameters.values()}
    transposed = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
    for name, tensor in found.items():
        values = np.frombuffer(tensor.data, "<f4").reshape(tensor.shape)
        values = values.T if name.endswith(transposed) else values
        check((values.shape, values.tobytes()) in unused, f"{directory}: {name} is no parameter of the checkpoint")
        unused.discard((values.shape, values.tobytes()))
    check(not unused, f"{directory}: {len(unused)} parameters of the checkpoint are missing")
    config = json.loads((directory / "config.json").read_text())
    check(list(found["wte.weight"].shape) == [config["vocab_size"], config["n_embd"]], "config.json: other sizes")
    print(f"{directory}: {len(found)} tensors, {config['n_layer']} layers, {config['n_head']} heads")


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks our files with the reference safetensors library.")
    parser.add_argument("checkpoint", type=Path, help="a checkpoint's own directory, .../step-00000100")
    parser.add_argument("--export", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--gpt2", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    print(f"safetensors {safetensors.__version__}, numpy {np.__version__}")
    tensors = check_checkpoint(arguments.checkpoint)
    for path in arguments.export:
        check_export(path, tensors)
    if arguments.gpt2:
        check_gpt2(arguments.gpt2, tensors)
    print("\n".join(problems) if problems else "all is as we say")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
