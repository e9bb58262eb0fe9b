"""What a trained encoder–decoder does with one source: where it looks, what it needs.

The answer is the model's own, each step the likeliest letter. Its weights on the
encoder states are kept, and one of those states can be replaced, to see which outputs
move.
"""

import math
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from core.checks import require_choice, require_int, require_number
from core.decoding_walk import walk_decoding
from core.recurrent_seq2seq import RecurrentEncoderDecoder
from core.source_memory import Memory
from core.text_tasks import TextTask
from core.vocabulary import END, PAD, SPECIALS

CHANGES = ("zeros", "scaled", "another source")
END_SIGN = "end"
MAX_FACTOR = 10.0


class Reading(NamedTuple):
    """One source and what a model makes of it.

    Attributes:
        source: Its S letters.
        answer: The T letters written, ``END_SIGN`` last where the model stopped.
        inputs: What the decoder reads at each step, (1, T): the start, then its own
            letters.
        memory: The encoder states and the last of them.
        distributions: Probabilities of the next letter at each step, (T, V).
        weights: Weights on the encoder states, (T, S); None without attention.
        right: The right letters, ``END_SIGN`` last.
    """

    source: tuple[str, ...]
    answer: tuple[str, ...]
    inputs: Tensor
    memory: Memory
    distributions: Tensor
    weights: Tensor | None
    right: tuple[str, ...]

    @property
    def wrong(self) -> list[int]:
        """The steps, from 0, whose letter is not the right one."""
        pairs = zip_longest(self.answer, self.right)
        return [t for t, (written, right) in enumerate(pairs) if written != right]


class Spread(NamedTuple):
    """Where the rows of an alignment map have their mass.

    Attributes:
        entropy: Of each row, in bits, (T,).
        on_source: Weight of each output on the letter it must copy, (R,); R is the
            number of outputs that copy one.
        near_source: The same with the neighbours of that letter counted in, (R,).
        offsets: How far to the right of that letter its largest weight lies, (R,); 0 is
            on the letter.
    """

    entropy: Tensor
    on_source: Tensor
    near_source: Tensor
    offsets: Tensor


class Change(NamedTuple):
    """What replacing one encoder state moved.

    Attributes:
        moved: Total variation between the distributions at each step, before and after,
            (T,), in [0, 1]; exactly 0 where nothing moved.
        choices: The likeliest letter at each step afterwards, the steps before it
            written as before.
    """

    moved: Tensor
    choices: tuple[str, ...]


@torch.inference_mode()
def read_source(
    model: RecurrentEncoderDecoder, task: TextTask, source: tuple[str, ...]
) -> Reading:
    """Let a model answer one source.

    Args:
        model: The model, in evaluation.
        task: What it was trained on.
        source: Letters, as ``task.read`` returns them.
    """
    wanted = task.target.encode(task.answer_to(source))
    walk = walk_decoding(
        model,
        task.source.encode(source),
        wanted,
        forced=False,
        max_len=len(source) + 1,
    )
    letters = task.target.decode(walk.chosen)
    inputs, seen = torch.tensor([walk.target_in]), walk.explained
    return Reading(
        source=source,
        answer=tuple(_named(letter) for letter in letters),
        inputs=inputs,
        memory=seen.memory,
        # Through ``decode``, as after a change: equal memories give equal numbers.
        distributions=model.decode(seen.memory, inputs)[0].softmax(dim=-1),
        weights=seen.cross_maps[0][0, 0] if seen.cross_maps else None,
        right=tuple(map(_named, task.target.decode(walk.true))),
    )


def entropy_bits(weights: Tensor) -> Tensor:
    """Return the entropy of each row, ``-Σ p log₂ p``, (..., S) -> (...).

    It is 0 where one key has all the weight and log₂ S where all have the same.
    """
    return torch.special.entr(weights).sum(dim=-1) / math.log(2)


def spread_of(weights: Tensor, *, mirrored: bool = True) -> Spread:
    """Return how the mass of an alignment map lies beside the letter to be copied.

    Args:
        weights: Rows are outputs, columns are source letters, (T, S).
        mirrored: Whether output t copies source letter S - 1 - t, as in reversing; if
            not, letter t.
    """
    num_keys = weights.shape[1]
    rows = weights[:num_keys]
    places = torch.arange(len(rows))
    wanted = (num_keys - 1 - places if mirrored else places)[:, None]
    keys = torch.arange(num_keys)
    near = (keys - wanted).abs() <= 1
    return Spread(
        entropy=entropy_bits(weights),
        on_source=rows.gather(1, wanted)[:, 0],
        near_source=(rows * near).sum(dim=-1),
        offsets=rows.argmax(dim=-1) - wanted[:, 0],
    )


@torch.inference_mode()
def change_state(
    model: RecurrentEncoderDecoder,
    task: TextTask,
    reading: Reading,
    position: int,
    *,
    how: str,
    factor: float = 0.0,
    other: tuple[str, ...] = (),
) -> Change:
    """Replace one encoder state and see which outputs move.

    The decoder reads the same letters as before, so a step moves only through the
    encoder states. The last state is also what the decoder starts from.

    Args:
        model: The model of the reading.
        task: Its task.
        reading: What it made of the source.
        position: Which state, from 0.
        how: "zeros"; "scaled" by ``factor``; or "another source": the state of
            ``other`` at that place, or its last one.
        factor: For "scaled", from -10 to 10.
        other: For "another source", its letters.

    Raises:
        ValueError: If an argument is out of range.
    """
    require_choice("how", how, CHANGES)
    last = len(reading.source) - 1
    require_int("position", position, 0, last)
    states = reading.memory.states.clone()
    if how == "another source":
        # As long as the source: the same letters then give the same numbers to the last
        # bit, which a longer or shorter sum need not.
        read = task.source.encode(other)[: last + 1]
        padding = [PAD] * (last + 1 - len(read))
        other_states = model.encode(torch.tensor([[*read, *padding]])).states
        states[0, position] = other_states[0, min(position, len(other) - 1)]
    else:
        scale = factor if how == "scaled" else 0.0
        states[0, position] *= require_number("factor", scale, -MAX_FACTOR, MAX_FACTOR)
    final = reading.memory.final
    if position == last:
        final = model.squeeze(states[:, last])
    memory = reading.memory._replace(states=states, final=final)
    after = model.decode(memory, reading.inputs)[0].softmax(dim=-1)
    moved = (after - reading.distributions).abs().sum(dim=-1) / 2
    choices = task.target.decode(after.argmax(dim=-1).tolist())
    return Change(moved, tuple(_named(letter) for letter in choices))


def _named(letter: str) -> str:
    return END_SIGN if letter == SPECIALS[END] else letter
