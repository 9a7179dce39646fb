#!/usr/bin/env python3
"""Loads gpt2.safetensors, as it comes back from our models, with Hugging Face's transformers, and back again.

Not a test of the build, for the library is not part of it. Needs an environment with transformers and torch:

    /usr/bin/python3 -m venv --system-site-packages /tmp/transformers   # with Debian's python3-torch
    /tmp/transformers/bin/pip install transformers==4.36.2 safetensors
    /tmp/transformers/bin/python tests/reference/check_with_transformers.py bazel-bin/tools/checkpoint/checkpoint

The file goes through `checkpoint convert` into our names and out again. transformers must find every tensor and
nothing else, and compute the logits of gpt2.json; what it then saves itself must give the same bytes in our names.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers

REFERENCE = Path(__file__).resolve().parent
TOLERANCE = 1e-4


def main() -> None:
    program = sys.argv[1]
    expected = json.loads((REFERENCE / "gpt2.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        def convert(*arguments: str) -> None:
            subprocess.run([program, "convert", *arguments], check=True)

        heads = str(expected["config"]["n_head"])
        convert("--from", "gpt2", str(REFERENCE / "gpt2.safetensors"), f"{folder}/ours")
        convert("--to", "gpt2", f"{folder}/ours", f"{folder}/theirs", "--heads", heads)
        model, found = transformers.GPT2LMHeadModel.from_pretrained(f"{folder}/theirs", output_loading_info=True)
        assert not any(found.values()), found
        with torch.no_grad():
            logits = model.eval()(torch.tensor(expected["tokens"])).logits
        difference = (logits.flatten() - torch.tensor(expected["logits"])).abs().max().item()
        model.save_pretrained(f"{folder}/saved", safe_serialization=True)
        convert("--from", "gpt2", f"{folder}/saved", f"{folder}/again")
        same = Path(f"{folder}/again").read_bytes() == Path(f"{folder}/ours").read_bytes()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: logits differ by at most "
          f"{difference:.1e}; saved by it and converted again: {'the same bytes' if same else 'other bytes'}")
    sys.exit(0 if same and difference < TOLERANCE else 1)


if __name__ == "__main__":
    main()
