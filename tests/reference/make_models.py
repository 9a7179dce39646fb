#!/usr/bin/python3
"""Makes tests/reference/models with PyTorch and transformers, implementations independent of ours.

Run, outside of the repository for what pip installs:

    python3 -m venv /tmp/hf && /tmp/hf/bin/pip install torch==2.15.0 transformers==5.23.0 numpy
    /tmp/hf/bin/python tests/reference/make_models.py [CASE...]

A case is a small model or module of theirs with random weights, trained for 20 steps with SGD, float32 on one thread, every
step with its own batch of 6 samples. It writes

  <case>/config.json, <case>/model.safetensors   the initial model, as save_pretrained writes it (a module has no config)
  <case>/data.safetensors   the inputs of each step (data.*, whose first dim is the step), the logits of the first batch
                            and the gradients of its loss, computed in double precision (logits, gradient.*)
  <case>/theirs.safetensors what save_pretrained writes, if it splits parameters; model.safetensors has them whole
  <case>/losses.json        {"lr", "momentum", "losses", "losses_float64"}: that before each update
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Callable, Dict, Tuple

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

import architectures

STEPS = 20
BATCH = 6
TIME = 12
VOCABULARY = 61
LR = 0.05
MOMENTUM = 0.9
FOLDER = Path(__file__).resolve().parent / "models"

Batch = Dict[str, Tensor]
# The model, its data by input (steps, batch, ...), and (logits, loss) of a batch.
Case = Tuple[nn.Module, Batch, Callable[[nn.Module, Batch], Tuple[Tensor, Tensor]]]


def language_batches() -> Batch:
    tokens = torch.randint(VOCABULARY, (STEPS, BATCH, 1))
    for _ in range(TIME):
        surprise = torch.randint(4, (STEPS, BATCH, 1)) == 0
        next_token = torch.where(surprise, torch.randint(VOCABULARY, (STEPS, BATCH, 1)), (5 * tokens[..., -1:] + 7) % VOCABULARY)
        tokens = torch.cat([tokens, next_token], dim=2)
    return {"x": tokens[..., :-1].contiguous(), "y": tokens[..., 1:].contiguous()}


def next_token_loss(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
    logits = model(input_ids=batch["x"], use_cache=False).logits
    return logits, F.cross_entropy(logits.reshape(-1, VOCABULARY), batch["y"].reshape(-1))


SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = {**SIZES, "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 64}


def llama_case() -> Case:
    scaling = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    config = transformers.LlamaConfig(**DECODER, rms_norm_eps=1e-5, rope_parameters=scaling)
    return transformers.LlamaForCausalLM(config), language_batches(), next_token_loss


def qwen2_case() -> Case:
    config = transformers.Qwen2Config(**DECODER, rms_norm_eps=1e-6, tie_word_embeddings=True)
    return transformers.Qwen2ForCausalLM(config), language_batches(), next_token_loss


def mixtral_case() -> Case:
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    config = transformers.MixtralConfig(**DECODER, rms_norm_eps=1e-5, rope_parameters=rope, num_local_experts=6,
                                        num_experts_per_tok=2, experts_implementation="eager")
    return transformers.MixtralForCausalLM(config), language_batches(), next_token_loss


def mistral_case() -> Case:
    """A window shorter than the sequences."""
    config = transformers.MistralConfig(**DECODER, rms_norm_eps=1e-5, sliding_window=5)
    return transformers.MistralForCausalLM(config), language_batches(), next_token_loss


def qwen3_case() -> Case:
    config = transformers.Qwen3Config(**DECODER, rms_norm_eps=1e-6, head_dim=12, tie_word_embeddings=True)
    return transformers.Qwen3ForCausalLM(config), language_batches(), next_token_loss


def qwen3_moe_case() -> Case:
    config = transformers.Qwen3MoeConfig(**DECODER, rms_norm_eps=1e-6, head_dim=8, moe_intermediate_size=20, num_experts=6,
                                         num_experts_per_tok=3, norm_topk_prob=False, experts_implementation="eager")
    return transformers.Qwen3MoeForCausalLM(config), language_batches(), next_token_loss


def mamba_case() -> Case:
    config = transformers.MambaConfig(vocab_size=VOCABULARY, hidden_size=24, state_size=5, num_hidden_layers=2,
                                      conv_kernel=3, time_step_rank=4)
    return transformers.MambaForCausalLM(config), language_batches(), next_token_loss


def class_loss(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
    logits = model(pixel_values=batch["x"]).logits
    return logits, F.cross_entropy(logits, batch["y"])


def vit_case() -> Case:
    config = transformers.ViTConfig(**SIZES, image_size=12, patch_size=4, num_channels=2, num_labels=10)
    y = torch.randint(10, (STEPS, BATCH))
    x = torch.randn(10, 2, 12, 12)[y] + torch.randn(STEPS, BATCH, 2, 12, 12)
    return transformers.ViTForImageClassification(config), {"x": x, "y": y}, class_loss


def bert_case() -> Case:
    """Padding behind sequences of several lengths, two types of tokens, three tokens of each sequence hidden."""
    config = transformers.BertConfig(**SIZES, vocab_size=VOCABULARY, max_position_embeddings=16)
    hidden_token = VOCABULARY - 1
    lengths = torch.randint(6, TIME + 1, (STEPS, BATCH, 1))
    mask = (torch.arange(TIME) < lengths).long()
    # 0 is padding, whose embedding takes no gradient of theirs.
    text = (language_batches()["x"] % (VOCABULARY - 2) + 1) * mask
    hidden = (torch.rand(STEPS, BATCH, TIME) + 2.0 * (1 - mask)).argsort(dim=-1)[..., :3]
    labels = torch.full_like(text, -100).scatter(-1, hidden, text.gather(-1, hidden))
    data = {"x": text.scatter(-1, hidden, hidden_token), "y": labels, "mask": mask,
            "types": (torch.arange(TIME) >= lengths // 2).long()}

    def loss_of(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
        output = model(input_ids=batch["x"], attention_mask=batch["mask"], token_type_ids=batch["types"], labels=batch["y"])
        return output.logits, output.loss

    return transformers.BertForMaskedLM(config), data, loss_of


def mse_of(y: Tensor, batch: Batch) -> Tuple[Tensor, Tensor]:
    return y, F.mse_loss(y, batch["y"])


def vectors(*shape: int) -> Tensor:
    return torch.randn(STEPS, BATCH, *shape)


LAYER = {"d_model": 32, "nhead": 4, "dim_feedforward": 48, "dropout": 0.0, "batch_first": True}


def encoder_case() -> Case:
    """Post-norm, ReLU, keys of padding hidden."""
    lengths = torch.randint(3, TIME + 1, (STEPS, BATCH))

    def loss_of(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
        return mse_of(model(batch["x"], src_key_padding_mask=torch.arange(TIME) >= batch["lengths"][:, None]), batch)

    return (nn.TransformerEncoderLayer(**LAYER), {"x": vectors(TIME, 32), "y": vectors(TIME, 32), "lengths": lengths},
            loss_of)


def decoder_case() -> Case:
    """Pre-norm, GELU, causal, with a memory of another length."""
    causal = nn.Transformer.generate_square_subsequent_mask(TIME)

    def loss_of(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
        return mse_of(model(batch["x"], batch["memory"], tgt_mask=causal.to(batch["x"].dtype)), batch)

    return (nn.TransformerDecoderLayer(**LAYER, activation="gelu", norm_first=True),
            {"x": vectors(TIME, 32), "y": vectors(TIME, 32), "memory": vectors(7, 32)}, loss_of)


def recurrent_loss(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
    return mse_of(model(batch["x"])[0], batch)


def lstm_case() -> Case:
    return nn.LSTM(8, 16, 2, batch_first=True), {"x": vectors(TIME, 8), "y": vectors(TIME, 16)}, recurrent_loss


def gru_case() -> Case:
    return nn.GRU(8, 16, 2, batch_first=True), {"x": vectors(TIME, 8), "y": vectors(TIME, 16)}, recurrent_loss


class LstmLanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.lstm = nn.LSTM(16, 24, 2, batch_first=True)
        self.output = nn.Linear(24, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.output(self.lstm(self.embedding(tokens))[0])


def lstm_language_case() -> Case:
    def loss_of(model: nn.Module, batch: Batch) -> Tuple[Tensor, Tensor]:
        logits = model(batch["x"])
        return logits, F.cross_entropy(logits.reshape(-1, VOCABULARY), batch["y"].reshape(-1))

    return LstmLanguageModel(), language_batches(), loss_of


CASES: Dict[str, Callable[[], Case]] = {
    "llama": llama_case, "qwen2": qwen2_case, "vit": vit_case,
    "encoder": encoder_case, "decoder": decoder_case, "lstm": lstm_case, "gru": gru_case,
    "bert": bert_case, "lstm_language": lstm_language_case,
    **architectures.cases(STEPS, BATCH, VOCABULARY, language_batches),
    "mamba": mamba_case, "mixtral": mixtral_case,
    "mistral": mistral_case, "qwen3": qwen3_case, "qwen3_moe": qwen3_moe_case}


def spread_out(model: nn.Module) -> None:
    """Initial values at which no part of the model is close to idle."""
    with torch.no_grad():
        for name, param in model.named_parameters():
            param.normal_(std=0.1 if param.dim() == 1 else 0.2)
            if "norm" in name.lower() and name.endswith("weight"):
                param.add_(1.0)


def in_dtype(batch: Batch, dtype: torch.dtype) -> Batch:
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in batch.items()}


def train(case: Case, initial: Dict[str, Tensor], dtype: torch.dtype) -> Tuple[list, Tensor, Dict[str, Tensor]]:
    model, data, loss_of = case
    model.to(dtype).load_state_dict(initial)
    model.eval()  # without dropout
    updater = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    losses, first_logits, gradients = [], None, {}
    for step in range(STEPS):
        logits, loss = loss_of(model, in_dtype({name: value[step] for name, value in data.items()}, dtype))
        updater.zero_grad()
        loss.backward()
        if step == 0:
            first_logits = logits.detach().clone()
            gradients = {name: param.grad.clone() for name, param in model.named_parameters() if param.grad is not None}
        updater.step()
        losses.append(float(f"{loss.item():.9g}"))
    return losses, first_logits, gradients


def make(name: str) -> None:
    torch.manual_seed(list(CASES).index(name))
    case = CASES[name]()
    model, data, _ = case
    spread_out(model)
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(model, "save_pretrained"):
        with tempfile.TemporaryDirectory() as temporary:
            model.save_pretrained(temporary)
            for file in ("config.json", "model.safetensors"):
                (folder / file).write_bytes((Path(temporary) / file).read_bytes())
    else:
        save_file(model.state_dict(), folder / "model.safetensors", {"format": "pt"})
    initial = {key: value.clone() for key, value in model.state_dict().items()}
    # transformers may give parameters other names in its files than in memory, or split them: then ours are those in memory.
    saved = load_file(folder / "model.safetensors")
    names = {key: next((name for name, other in saved.items() if torch.equal(value, other)), None)
             for key, value in model.named_parameters()}
    if None in names.values():
        (folder / "model.safetensors").rename(folder / "theirs.safetensors")
        save_file(initial, folder / "model.safetensors", {"format": "pt"})
        names = {key: key for key in names}
    losses, _, _ = train(case, initial, torch.float32)
    losses_float64, logits, gradients = train(case, initial, torch.float64)
    tensors = {f"data.{key}": value.contiguous() for key, value in data.items()}
    tensors["logits"] = logits.float().contiguous()
    tensors.update({f"gradient.{names[key]}": value.float().contiguous() for key, value in gradients.items()})
    save_file(tensors, folder / "data.safetensors")
    made_with = f"torch {torch.__version__}, transformers {transformers.__version__}"
    (folder / "losses.json").write_text(json.dumps(
        {"made_with": made_with, "lr": LR, "momentum": MOMENTUM, "losses": losses, "losses_float64": losses_float64}) + "\n")
    gap = max(abs(a - b) / abs(b) for a, b in zip(losses, losses_float64))
    print(f"{name}: {losses[0]:.4f} -> {losses[-1]:.4f}, float32 is within {gap:.1e} of float64")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for one in sys.argv[1:] or CASES:
        make(one)
