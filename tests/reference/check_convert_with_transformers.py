#!/usr/bin/env python3
"""Lets transformers make models, takes them through //tools:convert and back, and compares.

Not a test of the build, for the library is not part of it. Needs what make_models.py needs:

    bazel build //tools/convert //tests/reference:model_logits
    /tmp/hf/bin/python tests/reference/check_convert_with_transformers.py \\
        bazel-bin/tools/convert/convert bazel-bin/tests/reference/model_logits

A model of each kind with random weights, in one file of float32 and in shards of bfloat16, becomes a file for --init,
with which our model must compute transformers' logits. Written back like it was, every file must be the same bytes;
written with nothing but its config.json, transformers must find every tensor and nothing else, with the same values.
"""

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Dict, Tuple

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

TOLERANCE = 2e-5  # relative to the largest logit
VOCABULARY = 97
BATCH = 3
TIME = 17

Inputs = Dict[str, Tensor]
Logits = Callable[[transformers.PreTrainedModel, Inputs], Tensor]

SIZES = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 6}
DECODER = {**SIZES, "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 64}


def tokens() -> Tensor:
    return torch.randint(1, VOCABULARY, (BATCH, TIME))


def of_tokens(model: transformers.PreTrainedModel, inputs: Inputs) -> Tensor:
    return model(input_ids=inputs["x"], use_cache=False).logits


def llama() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER, rms_norm_eps=1e-5)), {"x": tokens()}, of_tokens


def qwen2() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.Qwen2Config(**DECODER, rms_norm_eps=1e-6, tie_word_embeddings=True)
    return transformers.Qwen2ForCausalLM(config), {"x": tokens()}, of_tokens


def mixtral() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.MixtralConfig(**DECODER, rms_norm_eps=1e-5, num_local_experts=5, num_experts_per_tok=2)
    return transformers.MixtralForCausalLM(config), {"x": tokens()}, of_tokens


def mistral() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    return transformers.MistralForCausalLM(transformers.MistralConfig(**DECODER, sliding_window=7)), {"x": tokens()}, of_tokens


def qwen3() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.Qwen3Config(**DECODER, head_dim=12, tie_word_embeddings=True)
    return transformers.Qwen3ForCausalLM(config), {"x": tokens()}, of_tokens


def qwen3_moe() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.Qwen3MoeConfig(**DECODER, head_dim=12, moe_intermediate_size=24, num_experts=5,
                                         num_experts_per_tok=2, norm_topk_prob=True)
    return transformers.Qwen3MoeForCausalLM(config), {"x": tokens()}, of_tokens


def mamba() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.MambaConfig(hidden_size=48, state_size=6, num_hidden_layers=3, vocab_size=VOCABULARY)
    return transformers.MambaForCausalLM(config), {"x": tokens()}, of_tokens


def bert() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    lengths = torch.tensor([[TIME], [5], [11]])
    inputs = {"x": tokens(), "mask": (torch.arange(TIME) < lengths).long(), "types": torch.randint(2, (BATCH, TIME))}

    def logits(model: transformers.PreTrainedModel, inputs: Inputs) -> Tensor:
        return model(input_ids=inputs["x"], attention_mask=inputs["mask"], token_type_ids=inputs["types"]).logits

    config = transformers.BertConfig(**SIZES, vocab_size=VOCABULARY, max_position_embeddings=32)
    return transformers.BertForMaskedLM(config), inputs, logits


def vit() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.ViTConfig(**SIZES, image_size=24, patch_size=6, num_channels=3, num_labels=7)
    return (transformers.ViTForImageClassification(config), {"x": torch.randn(BATCH, 3, 24, 24)},
            lambda model, inputs: model(pixel_values=inputs["x"]).logits)


def gpt2() -> Tuple[transformers.PreTrainedModel, Inputs, Logits]:
    config = transformers.GPT2Config(n_layer=3, n_head=6, n_embd=48, n_positions=TIME, vocab_size=VOCABULARY,
                                     bos_token_id=None, eos_token_id=None)
    return transformers.GPT2LMHeadModel(config), {"x": tokens()}, of_tokens


def are_same_directories(a: Path, b: Path) -> bool:
    names = sorted(path.name for path in a.iterdir() if path.name != "generation_config.json")
    return names == sorted(path.name for path in b.iterdir()) and not any(filecmp.cmpfiles(a, b, names, shallow=False)[1:])


def check(name: str, dtype: torch.dtype, convert: str, model_logits: str, folder: Path) -> bool:
    torch.manual_seed(7)
    model, inputs, logits_of = globals()[name]()
    with torch.no_grad():
        for param in model.parameters():  # no part of the model is close to idle
            param.add_(0.1 * torch.randn_like(param))
    theirs, ours, back, alone = (folder / part for part in ("theirs", "ours", "back", "alone"))
    model.to(dtype).save_pretrained(theirs, max_shard_size="1GB" if dtype == torch.float32 else "60KB")
    subprocess.run([convert, "--from", theirs, ours], check=True, stdout=subprocess.DEVNULL)

    save_file({key: value.contiguous() for key, value in inputs.items()}, folder / "inputs")
    subprocess.run([model_logits, theirs, ours, folder / "inputs", folder / "logits"], check=True)
    reference = type(model).from_pretrained(theirs, dtype=torch.float32).eval().double()  # buffers were never 16 bits
    if name in ("mixtral", "qwen3_moe"):
        reference.set_experts_implementation("eager")  # the default has no float64
    with torch.no_grad():
        expected = logits_of(reference, {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()})
    difference = (load_file(folder / "logits")["logits"] - expected).abs().max().item() / expected.abs().max().item()

    subprocess.run([convert, "--to", back, ours, "--like", theirs], check=True, stdout=subprocess.DEVNULL)
    is_same = are_same_directories(theirs, back)
    files = len(list(theirs.glob("*.safetensors")))
    for path in theirs.glob("model*"):
        path.unlink()
    subprocess.run([convert, "--to", alone, ours, "--like", theirs], check=True, stdout=subprocess.DEVNULL)
    loaded, found = type(model).from_pretrained(alone, output_loading_info=True, dtype=dtype)
    missing = {key: value for key, value in found.items() if value}
    is_loaded = not missing and all(
        torch.equal(value, model.state_dict()[key].to(dtype)) for key, value in loaded.state_dict().items())
    print(f"{name:9} {str(dtype)[6:]:9} {files} file(s): logits differ by {difference:.1e} of the largest; written back: "
          f"{'the same bytes' if is_same else 'OTHER BYTES'}; loaded by transformers: {'all' if is_loaded else 'NOT ALL'} {missing or ''}")
    return is_same and is_loaded and difference < TOLERANCE


def main() -> None:
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    results = []
    for name in ("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "mamba", "bert", "vit", "gpt2"):
        for dtype in (torch.float32, torch.bfloat16):
            with tempfile.TemporaryDirectory() as folder:
                results.append(check(name, dtype, sys.argv[1], sys.argv[2], Path(folder)))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
