"""transformers: tokenizers by words, and networks of the asked-for kind with one layer and random weights.

The width of a network is that of the real one, by its name, since scripts put layers of that width
behind it; it has one layer and a vocabulary of a thousand words.
"""

from __future__ import annotations

import json
import math
import os
import sys
import zlib
from typing import Any

import torch
from torch import nn

from .. import context
from ..absent import downloaded
from ..context import run
from ..inert import others

WEIGHTS_NAME, CONFIG_NAME = "pytorch_model.bin", "config.json"
VOCABULARY = 1000
SPECIAL = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4, "bos": 5, "eos": 6}
WIDTHS = (
    ("tiny", 128),
    ("mini", 256),
    ("small", 512),
    ("large", 1024),
    ("medium", 1024),
    ("xl", 1600),
    ("t5", 512),
)
"""The widths of real networks by a part of their names; 768 of others."""
LONGEST = 512


class ModelOutput(dict):  # type: ignore[type-arg]
    """Results under names, and in their order by numbers."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def __iter__(self) -> Any:
        # Networks of older versions gave tuples.
        parts, count = self.to_tuple(), context.unpacking(sys._getframe(1))
        if count is not None and count <= len(parts) and "input_ids" not in self.keys():
            return iter(parts[:count])
        return iter(list(super().keys()))

    def to_tuple(self) -> tuple[Any, ...]:
        """What there is, in order."""
        return tuple(one for one in self.values() if one is not None)


class BatchEncoding(ModelOutput):
    """Tensors or lists of numbers."""

    def to(self, *args: Any, **kwargs: Any) -> BatchEncoding:
        """On another device."""
        for name, one in self.items():
            if isinstance(one, torch.Tensor):
                self[name] = one.to(*args, **kwargs)
        return self

    def keys(self) -> Any:
        """The names."""
        return super().keys()


class PreTrainedTokenizer:
    """Words by their spaces, numbered by a checksum."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.vocab_size = VOCABULARY
        self.added: dict[str, int] = {}
        self.model_max_length = LONGEST
        self.padding_side = "right"
        self.words: dict[int, str] = {}
        for name, number in SPECIAL.items():
            setattr(self, name + "_token", f"[{name.upper()}]")
            setattr(self, name + "_token_id", number)
            self.words[number] = f"[{name.upper()}]"
        run().used("tokenizer", f"words by their spaces, numbers below {VOCABULARY}")

    @classmethod
    def from_pretrained(cls, name: Any, *args: Any, **kwargs: Any) -> Any:
        """The tokenizer of a network."""
        return cls()

    def __len__(self) -> int:
        return VOCABULARY + len(self.added)

    @property
    def vocab(self) -> dict[str, int]:
        """Words and numbers."""
        special = {getattr(self, name + "_token"): number for name, number in SPECIAL.items()}
        words = {f"word_{i}": i for i in range(len(SPECIAL), VOCABULARY)}
        return {**special, **words, **self.added}

    def get_vocab(self) -> dict[str, int]:
        """Words and numbers."""
        return self.vocab

    def add_tokens(self, tokens: Any, *args: Any, **kwargs: Any) -> int:
        """More words."""
        for one in [tokens] if isinstance(tokens, str) else tokens:
            self.added.setdefault(str(one), VOCABULARY + len(self.added))
        return len(self.added)

    def add_special_tokens(self, tokens: Any, *args: Any) -> int:
        """More words with a meaning of their own."""
        for name, one in tokens.items():
            if isinstance(one, str):
                self.add_tokens(one)
                setattr(self, name, one)
                setattr(self, name + "_id", self.added[one])
            else:
                self.add_tokens(one)
        return len(self.added)

    def tokenize(self, text: Any, *args: Any, **kwargs: Any) -> list[str]:
        """Words."""
        return str(text).split()

    def number(self, word: str) -> int:
        """The number of a word."""
        for name, number in SPECIAL.items():
            if word == getattr(self, name + "_token"):
                return int(getattr(self, name + "_token_id", number))
        if word in self.added:
            return self.added[word]
        found = len(SPECIAL) + zlib.crc32(word.encode()) % (VOCABULARY - len(SPECIAL))
        self.words[found] = word
        return found

    def convert_tokens_to_ids(self, words: Any) -> Any:
        """Numbers of words."""
        return self.number(words) if isinstance(words, str) else [self.number(one) for one in words]

    def convert_ids_to_tokens(self, numbers: Any, *args: Any, **kwargs: Any) -> Any:
        """Words of numbers."""
        if isinstance(numbers, int):
            return self.words.get(numbers, f"word_{numbers}")
        return [self.words.get(int(one), f"word_{int(one)}") for one in numbers]

    def decode(self, numbers: Any, *args: Any, **kwargs: Any) -> str:
        """A text of numbers."""
        numbers = numbers.reshape(-1).tolist() if isinstance(numbers, torch.Tensor) else numbers
        return " ".join(self.convert_ids_to_tokens([numbers] if isinstance(numbers, int) else list(numbers)))

    def batch_decode(self, rows: Any, *args: Any, **kwargs: Any) -> list[str]:
        """Texts of numbers."""
        return [self.decode(row) for row in rows]

    def _row(self, text: Any, pair: Any, special: bool, longest: int | None) -> tuple[list[int], list[int]]:
        def numbers(one: Any) -> list[int]:
            words = one if isinstance(one, (list, tuple)) else self.tokenize(one)
            return [word if isinstance(word, int) else self.number(str(word)) for word in words]

        first = numbers(text)
        second = [] if pair is None else numbers(pair)
        room = (longest or LONGEST) - special * (2 + (pair is not None))
        while len(first) + len(second) > room:
            (first if len(first) >= len(second) else second).pop()
        if not special:
            return first + second, [0] * len(first) + [1] * len(second)
        tail = [*second, SPECIAL["sep"]] if pair is not None else []
        return [SPECIAL["cls"], *first, SPECIAL["sep"], *tail], [0] * (len(first) + 2) + [1] * len(tail)

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding: Any = False,
        truncation: Any = None,
        max_length: int | None = None,
        return_tensors: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Numbers of texts, padded, with masks."""
        text = kwargs.pop("text_target", None) if text is None else text
        split = kwargs.get("is_split_into_words", False)
        several = isinstance(text, (list, tuple)) and not (split and text and isinstance(text[0], str))
        texts = list(text) if several else [text]
        pairs = (
            (list(text_pair) if several else [text_pair]) if text_pair is not None else [None] * len(texts)
        )
        if several and texts and isinstance(texts[0], tuple):
            texts, pairs = [one[0] for one in texts], [one[1] for one in texts]
        rows = [self._row(one, other, add_special_tokens, max_length) for one, other in zip(texts, pairs)]
        width = max(len(row) for row, _ in rows) if rows else 0
        if padding == "max_length" or kwargs.get("pad_to_max_length"):
            width = max_length or LONGEST
        fill = (
            bool(padding) or bool(kwargs.get("pad_to_max_length")) or (return_tensors is not None and several)
        )
        found = BatchEncoding(input_ids=[], token_type_ids=[], attention_mask=[])
        for row, kinds in rows:
            missing = max(0, width - len(row)) if fill else 0
            found["input_ids"].append(row + [self.pad_token_id] * missing)  # type: ignore[attr-defined]
            found["token_type_ids"].append(kinds + [0] * missing)
            found["attention_mask"].append([1] * len(row) + [0] * missing)
        for name in list(found):
            found[name] = found[name] if several or return_tensors is not None else found[name][0]
            if return_tensors is not None:
                found[name] = torch.tensor(found[name])
        return found

    encode_plus = batch_encode_plus = __call__

    def encode(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """Numbers of a text."""
        return self(text, *args, **kwargs)["input_ids"]

    def pad(
        self,
        rows: Any,
        padding: Any = True,
        max_length: Any = None,
        return_tensors: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Equally long rows."""
        rows = (
            [dict(one) for one in rows]
            if isinstance(rows, (list, tuple))
            else [dict(zip(rows, row)) for row in zip(*rows.values())]
        )
        found = BatchEncoding()
        for name in rows[0]:
            values = [one[name] for one in rows]
            if isinstance(values[0], (list, torch.Tensor)) and getattr(values[0], "ndim", 1) == 1:
                longest = max_length or max(len(one) for one in values)
                values = [list(map(int, one)) + [0] * (longest - len(one)) for one in values]
            found[name] = torch.tensor(values) if return_tensors or padding else values
        return found

    def save_pretrained(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is kept."""


class PretrainedConfig:
    """The sizes of a network."""

    def __init__(self, name: Any = "", **given: Any) -> None:
        self.name_or_path = str(name)
        width = next((width for part, width in WIDTHS if part in str(name).lower()), 768)
        self.hidden_size = self.n_embd = self.d_model = self.dim = width
        self.vocab_size, self.num_labels = VOCABULARY, 2
        self.num_hidden_layers = self.n_layer = 1
        self.hidden_dropout_prob = 0.1
        self.output_hidden_states = self.output_attentions = False
        self.is_encoder_decoder = False
        self.pad_token_id, self.bos_token_id, self.eos_token_id = (
            SPECIAL["pad"],
            SPECIAL["bos"],
            SPECIAL["eos"],
        )
        self.id2label: dict[int, str] = {}
        for key, value in given.items():
            setattr(self, key, value)
        for key in ("n_embd", "d_model", "dim"):
            if key in given:
                self.hidden_size = given[key]
        self.vocab_size = max(VOCABULARY, min(self.vocab_size, 5 * VOCABULARY))

    @classmethod
    def from_pretrained(cls, name: Any, **kwargs: Any) -> Any:
        """Those of a network."""
        return cls(name, **kwargs)

    @classmethod
    def from_json_file(cls, path: Any) -> Any:
        """Those that a file says, if it is there; the layers stay as few as they are."""
        given = json.loads(context.read(os.fspath(path)) or "{}")
        return cls(path, **{key: value for key, value in given.items() if "layer" not in key})

    @classmethod
    def from_dict(cls, given: Any, **kwargs: Any) -> Any:
        """Those that a dictionary says."""
        return cls(**{**given, **kwargs})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary."""
        return dict(vars(self))

    def update(self, values: Any) -> None:
        """Other values."""
        vars(self).update(values)


class PreTrainedModel(nn.Module):
    """A network of one layer; what stands behind it depends on its name."""

    head = ""
    causal = False

    def __init__(self, config: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.config = config or PretrainedConfig(**kwargs)
        # A class of the script's own that is derived from what all have in common makes its own layers.
        if next(one for one in type(self).__mro__ if one.__module__ == __name__) is not PreTrainedModel:
            self.build()

    def build(self) -> None:
        """Make the layers."""
        config = self.config
        width = config.hidden_size
        heads = next(count for count in (12, 8, 4, 2, 1) if width % count == 0)
        self.embeddings = nn.Embedding(config.vocab_size, width)
        self.positions = nn.Embedding(LONGEST, width)
        self.layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, config.hidden_dropout_prob, batch_first=True
        )
        self.pooler = nn.Linear(width, width)
        count = {"lm": config.vocab_size, "": 0, "span": 2, "choice": 1}.get(
            self.head, config.num_labels or 2
        )
        if count:
            self.classifier = nn.Linear(width, count)
        run().used(type(self).__name__, f"one layer of width {width} with random weights")

    @classmethod
    def from_pretrained(cls, name: Any = "", *args: Any, **kwargs: Any) -> Any:
        """A network of this kind; its weights are random."""
        config = kwargs.pop("config", None)
        kept = {
            key: value
            for key, value in kwargs.items()
            if key in ("num_labels", "output_hidden_states", "output_attentions", "id2label")
        }
        config = config if isinstance(config, PretrainedConfig) else PretrainedConfig(name, **kept)
        vars(config).update(kept)
        return cls(config, *args)

    def get_input_embeddings(self) -> Any:
        """The vectors of the words."""
        return self.embeddings

    def resize_token_embeddings(self, count: int, *args: Any) -> Any:
        """More words."""
        self.embeddings = nn.Embedding(count, self.config.hidden_size)
        self.config.vocab_size = count
        if self.head == "lm":
            self.classifier = nn.Linear(self.config.hidden_size, count)
        return self.embeddings

    def init_weights(self, *args: Any, **kwargs: Any) -> None:
        """Left as they are."""

    post_init = gradient_checkpointing_enable = save_pretrained = tie_weights = init_weights

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.parameters()).device

    def forward(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        labels: Any = None,
        inputs_embeds: Any = None,
        **kwargs: Any,
    ) -> Any:
        """The states of all words, and what the head makes of them."""
        values = (
            inputs_embeds
            if inputs_embeds is not None
            else self.embeddings(input_ids % self.config.vocab_size)
        )
        if kwargs.get("encoder_outputs") is not None and input_ids is None and inputs_embeds is None:
            values = kwargs["encoder_outputs"][0]
        if kwargs.get("decoder_input_ids") is not None:
            values = self.embeddings(kwargs["decoder_input_ids"]) + values.mean(1, keepdim=True)
        elif labels is not None and self.config.is_encoder_decoder:
            values = self.embeddings(labels.clamp(min=0)) + values.mean(1, keepdim=True)
        length = values.shape[1]
        values = values + self.positions(torch.arange(length, device=values.device) % LONGEST)
        padded = None
        if attention_mask is not None and attention_mask.dim() == 2 and attention_mask.shape[1] == length:
            padded = torch.zeros(attention_mask.shape, dtype=values.dtype).masked_fill(
                attention_mask == 0, -1e4
            )
        ahead = torch.full((length, length), -1e4).triu(1) if self.causal else None
        states = self.layer(values, src_mask=ahead, src_key_padding_mask=padded)
        pooled = torch.tanh(self.pooler(states[:, 0]))
        shown = (
            (values, states)
            if self.config.output_hidden_states or kwargs.get("output_hidden_states")
            else None
        )
        found = self._answer(states, pooled, labels, shown, **kwargs)
        return found if kwargs.get("return_dict", True) is not False else found.to_tuple()

    def _answer(self, states: Any, pooled: Any, labels: Any, shown: Any, **kwargs: Any) -> ModelOutput:
        if not self.head:
            return ModelOutput(last_hidden_state=states, pooler_output=pooled, hidden_states=shown)
        if self.head == "span":
            start, end = self.classifier(states).unbind(-1)
            loss = None
            if kwargs.get("start_positions") is not None:
                marks = ((start, kwargs["start_positions"]), (end, kwargs["end_positions"]))
                loss = (
                    sum(nn.functional.cross_entropy(one, at.clamp(0, one.shape[1] - 1)) for one, at in marks)
                    / 2
                )
            return ModelOutput(loss=loss, start_logits=start, end_logits=end, hidden_states=shown)
        logits = self.classifier(states if self.head in ("lm", "token") else pooled)
        loss = None
        if labels is not None:
            if self.head in ("lm", "token"):
                scores, wanted = (logits[:, :-1], labels[:, 1:]) if self.causal else (logits, labels)
                loss = nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), wanted.reshape(-1))
            elif logits.shape[-1] == 1:
                loss = nn.functional.mse_loss(logits.reshape(-1), labels.reshape(-1).float())
            elif labels.is_floating_point():
                loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            else:
                loss = nn.functional.cross_entropy(logits, labels.reshape(-1))
        return ModelOutput(loss=loss, logits=logits, hidden_states=shown)

    def generate(self, input_ids: Any = None, max_length: int = 20, **kwargs: Any) -> torch.Tensor:
        """As many words as are asked for, drawn at random."""
        count = kwargs.get("max_new_tokens") or max(1, min(max_length, 64) - input_ids.shape[1])
        drawn = torch.randint(len(SPECIAL), VOCABULARY, (input_ids.shape[0], count))
        return torch.cat([input_ids, drawn], 1)


HEADS = (
    ("ForSequenceClassification", "class"),
    ("ForTokenClassification", "token"),
    ("ForQuestionAnswering", "span"),
    ("ForMultipleChoice", "choice"),
    ("ForConditionalGeneration", "lm"),
    ("Seq2SeqLM", "lm"),
    ("LMHeadModel", "lm"),
    ("ForCausalLM", "lm"),
    ("ForMaskedLM", "lm"),
    ("ForPreTraining", "lm"),
)
FAMILIES = (
    "Auto Bert Roberta DistilBert Albert XLMRoberta GPT2 OpenAIGPT T5 Bart Electra Deberta DebertaV2 XLNet "
    "Longformer Camembert Reformer GPTNeo Llama OPT MBart Pegasus MT5"
).split()


def families() -> None:
    """The classes of all families and heads."""
    for family in FAMILIES:
        for suffix in ("Model", *(name for name, _ in HEADS)):
            plain = suffix.startswith(("Seq2", "ForCausal")) or suffix == "LMHeadModel"
            name = family + (
                "ModelFor" + suffix.replace("For", "", 1)
                if family == "Auto" and suffix != "Model"
                else suffix
            )
            head = dict(HEADS).get(suffix, "")
            causal = plain and suffix != "Seq2SeqLM"
            globals()[name] = type(
                name, (PreTrainedModel,), {"head": head, "causal": causal, "__module__": __name__}
            )
        for suffix in ("Tokenizer", "TokenizerFast"):
            globals()[family + suffix] = type(
                family + suffix, (PreTrainedTokenizer,), {"__module__": __name__}
            )
        globals()[family + "Config"] = type(family + "Config", (PretrainedConfig,), {"__module__": __name__})
    globals()["AutoModelWithLMHead"] = globals()["AutoModelForCausalLM"]
    globals()["BertPreTrainedModel"] = globals()["RobertaPreTrainedModel"] = PreTrainedModel


families()
PreTrainedTokenizerFast = PreTrainedTokenizerBase = PreTrainedTokenizer


class AdamW(torch.optim.AdamW):
    """torch's own, without what the older one had besides."""

    def __init__(self, params: Any, lr: float = 1e-3, **kwargs: Any) -> None:
        for name in ("correct_bias", "no_deprecation_warning"):
            kwargs.pop(name, None)
        super().__init__(params, lr, **kwargs)


def scaled(optimizer: Any, factor: Any) -> Any:
    """A schedule by a factor of the rate."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def get_linear_schedule_with_warmup(
    optimizer: Any, num_warmup_steps: int = 0, num_training_steps: int = 1, *args: Any, **kwargs: Any
) -> Any:
    """Up, and down to nothing."""

    def factor(step: int) -> float:
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        return max(0.0, (num_training_steps - step) / max(1, num_training_steps - num_warmup_steps))

    return scaled(optimizer, factor)


def get_cosine_schedule_with_warmup(
    optimizer: Any, num_warmup_steps: int = 0, num_training_steps: int = 1, *args: Any, **kwargs: Any
) -> Any:
    """Up, and down as a cosine."""

    def factor(step: int) -> float:
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        share = (step - num_warmup_steps) / max(1, num_training_steps - num_warmup_steps)
        return max(0.0, 0.5 * (1 + math.cos(math.pi * share)))

    return scaled(optimizer, factor)


def get_constant_schedule_with_warmup(
    optimizer: Any, num_warmup_steps: int = 0, *args: Any, **kwargs: Any
) -> Any:
    """Up, and then the same."""
    return scaled(optimizer, lambda step: min(1.0, step / max(1, num_warmup_steps)))


def get_constant_schedule(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    """The same."""
    return scaled(optimizer, lambda step: 1.0)


def WarmupLinearSchedule(optimizer: Any, warmup_steps: int, t_total: int, *args: Any) -> Any:
    """Up, and down to nothing, as older versions called it."""
    return get_linear_schedule_with_warmup(optimizer, warmup_steps, t_total)


def WarmupCosineSchedule(optimizer: Any, warmup_steps: int, t_total: int, *args: Any) -> Any:
    """Up, and down as a cosine, as older versions called it."""
    return get_cosine_schedule_with_warmup(optimizer, warmup_steps, t_total)


def WarmupConstantSchedule(optimizer: Any, warmup_steps: int, *args: Any) -> Any:
    """Up, and then the same, as older versions called it."""
    return get_constant_schedule_with_warmup(optimizer, warmup_steps)


ConstantLRSchedule = get_constant_schedule


def get_scheduler(
    name: Any, optimizer: Any, num_warmup_steps: int = 0, num_training_steps: int = 1, **kwargs: Any
) -> Any:
    """A schedule by its name."""
    return get_linear_schedule_with_warmup(optimizer, num_warmup_steps or 0, num_training_steps or 1)


class DataCollatorWithPadding:
    """Equally long rows."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.tokenizer = tokenizer

    def __call__(self, rows: Any) -> Any:
        rows = [{"labels" if key == "label" else key: value for key, value in row.items()} for row in rows]
        return self.tokenizer.pad([{k: v for k, v in row.items() if not isinstance(v, str)} for row in rows])


def default_data_collator(rows: Any) -> Any:
    """Rows as tensors."""
    return DataCollatorWithPadding(PreTrainedTokenizer())(rows)


def cached_path(url: Any, *args: Any, **kwargs: Any) -> str:
    """The path of a file, of one that would have been downloaded, too."""
    return str(url) if os.path.exists(url) else downloaded(run(), str(url))


def set_seed(seed: int) -> None:
    """Seeds of Python and torch."""
    import random

    random.seed(seed)
    torch.manual_seed(seed)


class logging:
    """Nothing is shown."""

    @staticmethod
    def set_verbosity_error(*args: Any) -> None:
        """Nothing is shown."""

    set_verbosity_warning = set_verbosity_info = set_verbosity = set_verbosity_error


__getattr__ = others(__name__)
