"""pytorch_pretrained_bert: the networks of BERT as transformers' older ones gave their results.

Kinds of segments come before masks, and a network gives a loss if it is told what is right, else its answer.
"""

from __future__ import annotations

import math
import os
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from ..inert import others
from . import transformers
from .transformers import (  # noqa: F401
    CONFIG_NAME,
    WEIGHTS_NAME,
    BertConfig,
    BertTokenizer,
    GPT2Tokenizer,
    OpenAIGPTTokenizer,
    cached_path,
)

PYTORCH_PRETRAINED_BERT_CACHE = os.path.join("~", ".pytorch_pretrained_bert")
ANSWERS = 2


class BertPreTrainedModel(transformers.PreTrainedModel):
    """What all have in common; a network of a script's own makes its layers itself."""

    def init_bert_weights(self, module: Any) -> None:
        """Weights as they were made."""

    @classmethod
    def from_pretrained(cls, name: Any = "", *args: Any, **kwargs: Any) -> Any:
        """A network of this kind; its weights are random."""
        for other in ("cache_dir", "state_dict", "from_tf"):
            kwargs.pop(other, None)
        return cls(BertConfig(name), *args, **kwargs)


PreTrainedBertModel = BertPreTrainedModel


class BertModel(BertPreTrainedModel, transformers.BertModel):  # type: ignore[misc]
    """The states of the words behind each layer, and what stands for the whole."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Any,
        token_type_ids: Any = None,
        attention_mask: Any = None,
        output_all_encoded_layers: bool = True,
    ) -> Any:
        """All states, or the last ones, and one for each text."""
        found = transformers.PreTrainedModel.forward(self, input_ids, attention_mask)
        states = found["last_hidden_state"]
        return [states] if output_all_encoded_layers else states, found["pooler_output"]


class Headed(BertPreTrainedModel):
    """BERT with a layer behind it."""

    of = "words"

    def __init__(self, config: Any, num_labels: int = ANSWERS) -> None:
        super().__init__(config)
        self.num_labels = num_labels
        self.bert = BertModel(config)
        self.dropout = torch.nn.Dropout(config.hidden_dropout_prob)
        self.classifier = torch.nn.Linear(config.hidden_size, self.width())

    def build(self) -> None:
        """Nothing but what is made in ``__init__``."""

    def width(self) -> int:
        """How many values the last layer gives."""
        return self.num_labels

    def answer(self, input_ids: Any, token_type_ids: Any, attention_mask: Any) -> torch.Tensor:
        """What the last layer gives, for each word or for each text."""
        states, pooled = self.bert(input_ids, token_type_ids, attention_mask, output_all_encoded_layers=False)
        answer: torch.Tensor = self.classifier(self.dropout(pooled if self.of == "texts" else states))
        return answer


class BertForSequenceClassification(Headed):
    """A class for each text."""

    of = "texts"

    def forward(  # type: ignore[override]
        self, input_ids: Any, token_type_ids: Any = None, attention_mask: Any = None, labels: Any = None
    ) -> Any:
        """The loss, or the answer."""
        answer = self.answer(input_ids, token_type_ids, attention_mask)
        if labels is None:
            return answer
        return cross_entropy(answer.view(-1, self.num_labels), labels.view(-1))


class BertForTokenClassification(Headed):
    """A class for each word."""

    def forward(  # type: ignore[override]
        self, input_ids: Any, token_type_ids: Any = None, attention_mask: Any = None, labels: Any = None
    ) -> Any:
        """The loss over the words that are there, or the answer."""
        answer = self.answer(input_ids, token_type_ids, attention_mask)
        if labels is None:
            return answer
        scores, wanted = answer.view(-1, self.num_labels), labels.view(-1)
        if attention_mask is not None:
            there = attention_mask.view(-1) == 1
            scores, wanted = scores[there], wanted[there]
        return cross_entropy(scores, wanted)


class BertForMultipleChoice(Headed):
    """One of several texts."""

    of = "texts"

    def width(self) -> int:
        """One for each text."""
        return 1

    def forward(  # type: ignore[override]
        self, input_ids: Any, token_type_ids: Any = None, attention_mask: Any = None, labels: Any = None
    ) -> Any:
        """The loss, or the answer."""
        given = (
            None if one is None else one.view(-1, one.size(-1))
            for one in (input_ids, token_type_ids, attention_mask)
        )
        answer = self.answer(*given).view(-1, self.num_labels)
        return answer if labels is None else cross_entropy(answer, labels)


class BertForQuestionAnswering(Headed):
    """Where an answer begins and ends."""

    def width(self) -> int:
        """Two for each word."""
        return 2

    def forward(  # type: ignore[override]
        self,
        input_ids: Any,
        token_type_ids: Any = None,
        attention_mask: Any = None,
        start_positions: Any = None,
        end_positions: Any = None,
    ) -> Any:
        """The loss, or the answers."""
        start, end = self.answer(input_ids, token_type_ids, attention_mask).unbind(-1)
        if start_positions is None or end_positions is None:
            return start, end
        beyond, total = start.size(1), torch.zeros(())
        for scores, wanted in ((start, start_positions), (end, end_positions)):
            place = wanted.reshape(-1).clamp(0, beyond)
            total = total + cross_entropy(scores, place, ignore_index=beyond)
        return total / 2


def over_known(scores: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The loss over what is known: -1 says that it is not."""
    return cross_entropy(scores.view(-1, scores.size(-1)), wanted.view(-1), ignore_index=-1)


class BertForPreTraining(Headed):
    """Words that are hidden, and whether the second text comes after the first."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.following = torch.nn.Linear(config.hidden_size, 2)

    def width(self) -> int:
        """One for each word of the vocabulary."""
        return int(self.config.vocab_size)

    def answers(self, input_ids: Any, token_type_ids: Any, attention_mask: Any) -> tuple[Any, Any]:
        """The words, and which text comes next."""
        states, pooled = self.bert(input_ids, token_type_ids, attention_mask, output_all_encoded_layers=False)
        return self.classifier(states), self.following(pooled)

    def forward(  # type: ignore[override]
        self,
        input_ids: Any,
        token_type_ids: Any = None,
        attention_mask: Any = None,
        masked_lm_labels: Any = None,
        next_sentence_label: Any = None,
    ) -> Any:
        """The loss, or the answers."""
        words, following = self.answers(input_ids, token_type_ids, attention_mask)
        if masked_lm_labels is None or next_sentence_label is None:
            return words, following
        return over_known(words, masked_lm_labels) + over_known(following, next_sentence_label)


class BertForMaskedLM(BertForPreTraining):
    """Words that are hidden."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Any,
        token_type_ids: Any = None,
        attention_mask: Any = None,
        masked_lm_labels: Any = None,
    ) -> Any:
        """The loss, or the answer."""
        words, _ = self.answers(input_ids, token_type_ids, attention_mask)
        if masked_lm_labels is None:
            return words
        return over_known(words, masked_lm_labels)


class BertForNextSentencePrediction(BertForPreTraining):
    """Whether the second text comes after the first."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Any,
        token_type_ids: Any = None,
        attention_mask: Any = None,
        next_sentence_label: Any = None,
    ) -> Any:
        """The loss, or the answer."""
        _, following = self.answers(input_ids, token_type_ids, attention_mask)
        if next_sentence_label is None:
            return following
        return over_known(following, next_sentence_label)


def warmup_linear(done: float, warmup: float = 0.002) -> float:
    """Up, and down to nothing."""
    return done / warmup if done < warmup else max((done - 1.0) / (warmup - 1.0), 0.0)


def warmup_cosine(done: float, warmup: float = 0.002) -> float:
    """Up, and down as a cosine."""
    return done / warmup if done < warmup else 0.5 * (1.0 + math.cos(math.pi * done))


def warmup_constant(done: float, warmup: float = 0.002) -> float:
    """Up, and then the same."""
    return done / warmup if done < warmup else 1.0


SCHEDULES = {
    "warmup_linear": warmup_linear,
    "warmup_cosine": warmup_cosine,
    "warmup_constant": warmup_constant,
    "none": warmup_constant,
}


class BertAdam(torch.optim.Optimizer):
    """Adam with decay apart from the gradient; nothing makes up for averages that begin at nothing."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        warmup: float = -1,
        t_total: int = -1,
        schedule: Any = "warmup_linear",
        b1: float = 0.9,
        b2: float = 0.999,
        e: float = 1e-6,
        weight_decay: float = 0.01,
        max_grad_norm: float = 1.0,
        **kwargs: Any,
    ) -> None:
        given = {
            "lr": lr,
            "schedule": schedule,
            "warmup": warmup,
            "t_total": t_total,
            "b1": b1,
            "b2": b2,
            "e": e,
            "weight_decay": weight_decay,
            "max_grad_norm": max_grad_norm,
        }
        super().__init__(params, given)

    def rate(self, group: Any, step: int) -> float:
        """The rate at a step."""
        schedule = SCHEDULES.get(group["schedule"] or "none") if group["t_total"] > 0 else None
        factor = schedule(step / group["t_total"], group["warmup"]) if schedule is not None else 1.0
        return float(group["lr"] * factor)

    def get_lr(self) -> list[float]:
        """The rates of all parameters that have been changed."""
        return [
            self.rate(group, self.state[one]["step"])
            for group in self.param_groups
            for one in group["params"]
            if self.state[one]
        ] or [0.0]

    def step(self, closure: Any = None) -> Any:
        """Change the parameters by their gradients."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    self.change(one, group)
        return loss

    @torch.no_grad()
    def change(self, one: Any, group: Any) -> None:
        """Change a parameter."""
        state = self.state[one]
        if not state:
            state.update(step=0, next_m=torch.zeros_like(one), next_v=torch.zeros_like(one))
        if group["max_grad_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(one, group["max_grad_norm"])
        first, second = group["b1"], group["b2"]
        state["next_m"].mul_(first).add_(one.grad, alpha=1 - first)
        state["next_v"].mul_(second).addcmul_(one.grad, one.grad, value=1 - second)
        change = state["next_m"] / (state["next_v"].sqrt() + group["e"])
        if group["weight_decay"] > 0:
            change = change + group["weight_decay"] * one
        one.sub_(self.rate(group, state["step"]) * change)
        state["step"] += 1


__getattr__ = others(__name__)
