#!/usr/bin/env python3
"""Writes tests/reference/beam_search.json: beam searches of transformers over a table of logits.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch transformers
    /tmp/venv/bin/python tests/reference/make_beam_search.py

The logits after a token depend on it alone, so that a test needs no model.
"""

import json
import os

import torch
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

VOCABULARY = 7
STOP = 6
CASES = [  # beams, max_tokens, length_penalty, seed
    (2, 6, 1.0, 0),
    (3, 8, 1.0, 1),
    (4, 10, 0.0, 2),
    (4, 10, 2.0, 3),
    (5, 12, 1.0, 7),
    (1, 9, 1.0, 5),
    (3, 15, -0.5, 6),
]


class TableConfig(PretrainedConfig):
    model_type = "table"
    num_hidden_layers = 1


class Table(PreTrainedModel, GenerationMixin):
    config_class = TableConfig

    def __init__(self, config, logits):
        super().__init__(config)
        self.logits = torch.nn.Parameter(logits)
        self.post_init()

    def _init_weights(self, module):
        pass

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}

    def forward(self, input_ids, **kwargs):
        return CausalLMOutputWithPast(logits=self.logits[input_ids])


def search(beams, max_tokens, length_penalty, seed):
    """Returns the table and the beams, best first."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(VOCABULARY, VOCABULARY, generator=generator) * 2.0
    logits[:, STOP] += 1.0
    config = TableConfig(vocab_size=VOCABULARY, pad_token_id=0, eos_token_id=STOP)
    model = Table(config, logits.clone()).eval()
    prompt = torch.tensor([[1, 3]])
    result = model.generate(
        prompt,
        generation_config=GenerationConfig(
            num_beams=beams,
            num_return_sequences=beams,
            max_new_tokens=max_tokens,
            length_penalty=length_penalty,
            early_stopping=False,
            do_sample=False,
            use_cache=False,
            eos_token_id=STOP,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_scores=True,
        ),
    )
    found = []
    for row, score in zip(result.sequences, getattr(result, "sequences_scores", [None] * beams)):
        tokens = row[prompt.shape[1]:].tolist()
        if STOP in tokens:
            tokens = tokens[: tokens.index(STOP) + 1]
        found.append({"tokens": tokens, "score": None if score is None else float(score)})
    return {
        "beams": beams,
        "max_tokens": max_tokens,
        "length_penalty": length_penalty,
        "last_token": 3,
        "stop": STOP,
        "logits": logits.tolist(),
        "expected": found,
    }


def main():
    path = os.path.join(os.path.dirname(__file__), "beam_search.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([search(*case) for case in CASES], file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
