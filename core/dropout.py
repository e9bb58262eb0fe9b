"""Dropout that draws from a generator of its own."""

import torch
from torch import Tensor, nn

from core.checks import require_number
from core.initial import seeded

MAX_DROPOUT = 0.99
_ENTRIES_PER_DRAW = 4
_LEVELS = 2**16


class Dropout(nn.Module):
    """Zero each entry with probability p while training, and scale up the others.

    ``output = x * kept / (1 - p)``, so the expected output is the input. Outside
    training, or with p = 0, the output is the input itself.

    Unlike ``nn.Dropout`` it never touches the global generator: two models that train
    side by side draw the masks they would draw alone.

    Reference:
        Srivastava et al., 2014, "Dropout: A Simple Way to Prevent Neural Networks from
        Overfitting", JMLR 15.
    """

    def __init__(self, p: float, *, generator: torch.Generator | None = None) -> None:
        """Keep the probability and the source of the masks.

        Args:
            p: Probability that an entry is zeroed, at most ``MAX_DROPOUT``.
            generator: Source of the masks; None means a fresh one seeded 0. The owner
                of a model may replace it, see ``use_generator``.

        Raises:
            ValueError: If p is out of range.
        """
        super().__init__()
        self.p = require_number("p of Dropout", p, 0, MAX_DROPOUT)
        self.generator = seeded(generator)

    @property
    def active(self) -> bool:
        """Whether a call drops anything: in training, with p above 0."""
        return self.training and self.p > 0

    def forward(self, x: Tensor) -> Tensor:
        """Return x with dropped entries in training, x itself otherwise."""
        return x * self._draw_factors(x) if self.active else x

    def extra_repr(self) -> str:
        """Show p where the module is printed."""
        return f"p={self.p}"

    def _draw_factors(self, x: Tensor) -> Tensor:
        # Drawing is the dearest part of a step on a CPU. One draw of 64 bits serves
        # four entries with a level of 16 bits each, so p is exact to 1/65536.
        device = self.generator.device
        num_draws = -(-x.numel() // _ENTRIES_PER_DRAW)
        bits = torch.empty(num_draws, dtype=torch.int64, device=device)
        bits.random_(-(2**63), None, generator=self.generator)
        levels = bits.view(torch.int16)[: x.numel()].view(x.shape)  # -32768 to 32767
        first_kept = round(self.p * _LEVELS) - _LEVELS // 2
        factors = torch.empty(x.shape, dtype=x.dtype, device=device)
        torch.ge(levels, first_kept, out=factors)  # 0 or 1
        return factors.mul_(1 / (1 - self.p)).to(x.device)


def use_generator(module: nn.Module, generator: torch.Generator) -> None:
    """Let every ``Dropout`` inside ``module`` draw from one generator.

    Args:
        module: A model, or a part of one.
        generator: Source of the masks, on any device.
    """
    for part in module.modules():
        if isinstance(part, Dropout):
            part.generator = generator
