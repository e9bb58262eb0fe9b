"""The same stack as ``nn.TransformerEncoder``: its weights, its speed, its hooks."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from core.blocks import EncoderBlock
from core.checks import RefusedError, require_int
from core.initial import generator_from
from core.models import ClassifierConfig, TransformerClassifier
from core.parity import Parity, compare
from core.train_config import MAX_SECONDS, MAX_STEPS, TrainConfig
from core.training import Trainer

PARITY_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
KINDS = ("forward", "train step")
MAX_TURNS = 100
_LAYER_NAMES = {  # ours to PyTorch's
    "attention.in_proj.": "self_attn.in_proj_",
    "attention.out_proj.": "self_attn.out_proj.",
    "feed_forward.expand.": "linear1.",
    "feed_forward.contract.": "linear2.",
    "attention_norm.": "norm1.",
    "feed_forward_norm.": "norm2.",
}

_Pair = tuple[Callable[[], Any], Callable[[], Any]]  # ours, the built-in


class HookCalls(NamedTuple):
    """What a hook on the attention of every layer is handed.

    Attributes:
        calls: How often it was called.
        with_weights: How many of the calls brought attention weights.
    """

    calls: int
    with_weights: int


class Comparison(NamedTuple):
    """Our stack beside the built-in one, both at rest.

    Attributes:
        parity: How far the tokens after them lie apart, in float32.
        ours: Number of our parameters.
        built_in: Number of theirs.
        hooks: What hooks on the built-in attention are handed.
    """

    parity: Parity
    ours: int
    built_in: int
    hooks: HookCalls


class TimedTurn(NamedTuple):
    """One turn of the two stacks, one after the other.

    Attributes:
        kind: ``"forward"`` or ``"train step"``.
        ours: Seconds of our stack.
        built_in: Seconds of ``nn.TransformerEncoder``.
    """

    kind: str
    ours: float
    built_in: float


class Timing(NamedTuple):
    """Median seconds of the turns so far, and the median ratio within a turn."""

    kind: str
    turns: int
    ours: float
    built_in: float
    ratio: float


def to_torch_encoder(blocks: Sequence[nn.Module]) -> nn.TransformerEncoder:
    """Return the built-in stack with a copy of the weights of our blocks.

    Args:
        blocks: At least one ``EncoderBlock``, all of one kind, with shortcuts.

    Raises:
        ValueError: If there is no block, or one without shortcuts: the built-in layer
            cannot leave them out.
    """
    if not blocks:
        raise RefusedError("blocks must hold at least one EncoderBlock, got none")
    first = cast(EncoderBlock, blocks[0])
    if not first.residual:
        raise RefusedError(
            "residual (False) must be True: nn.TransformerEncoderLayer always adds its "
            "shortcuts"
        )
    layer = nn.TransformerEncoderLayer(
        first.attention.d_model,
        first.attention.num_heads,
        first.feed_forward.expand.out_features,
        first.dropout.p,
        activation="gelu",
        batch_first=True,
        norm_first=first.norm_first,
        device="meta",  # so that no initial weights are drawn
    )
    encoder = nn.TransformerEncoder(layer, len(blocks), enable_nested_tensor=False)
    theirs = {
        f"layers.{number}.{name}": tensor
        for number, block in enumerate(blocks)
        for name, tensor in _torch_state(block).items()
    }
    encoder.load_state_dict(theirs, assign=True)
    return encoder.train(first.training)


def shortcut_code(config: ClassifierConfig) -> str:
    """Return the lines of Python that build the built-in stack of ``config``."""
    return (
        "layer = nn.TransformerEncoderLayer(\n"
        f"    d_model={config.d_model}, nhead={config.num_heads}, "
        f"dim_feedforward={config.ff_width}, dropout={config.dropout:g},\n"
        f'    activation="gelu", batch_first=True, norm_first={config.norm_first},\n'
        ")\n"
        f"encoder = nn.TransformerEncoder(layer, num_layers={config.num_layers})"
    )


def encoder_parity(config: ClassifierConfig, *, dtype: torch.dtype) -> Parity:
    """Compare the tokens after our stack and after the built-in one, both at rest.

    Both carry the same weights and read the same random tokens.

    Args:
        config: Sizes of the stack.
        dtype: ``torch.float32`` or ``torch.float64``.

    Raises:
        ValueError: If the stack has no shortcuts.
    """
    blocks = TransformerClassifier(config).blocks.to(dtype).eval()
    encoder, tokens = to_torch_encoder(list(blocks)), random_tokens(config, dtype)
    with torch.no_grad():
        ours = {"tokens after the stack": run_blocks(blocks, tokens)}
        theirs = {"tokens after the stack": encoder(tokens)}
    return compare(ours, theirs, tolerance=PARITY_TOLERANCE[dtype])


def compare_stacks(config: ClassifierConfig) -> Comparison:
    """Compare tokens, parameters and hooks of the two stacks.

    Args:
        config: Sizes of the stack.

    Raises:
        ValueError: If the stack has no shortcuts.
    """
    blocks = TransformerClassifier(config).blocks
    return Comparison(
        parity=encoder_parity(config, dtype=torch.float32),
        ours=count_parameters(blocks),
        built_in=count_parameters(to_torch_encoder(list(blocks))),
        hooks=weights_seen_by_hooks(config),
    )


def random_tokens(
    config: ClassifierConfig, dtype: torch.dtype = torch.float32, *, batch: int = 8
) -> Tensor:
    """Return standard normal tokens, (batch, T, d_model), of the seed of ``config``."""
    shape = (batch, config.num_positions, config.d_model)
    return torch.randn(shape, generator=generator_from(config.seed), dtype=dtype)


def run_blocks(blocks: Sequence[nn.Module] | nn.ModuleList, tokens: Tensor) -> Tensor:
    """Return the tokens after all blocks, (B, T, d_model) -> (B, T, d_model)."""
    for block in blocks:
        tokens = block(tokens)
    return tokens


def count_parameters(module: nn.Module) -> int:
    """Return how many learned numbers a module has."""
    return sum(parameter.numel() for parameter in module.parameters())


def weights_seen_by_hooks(config: ClassifierConfig) -> HookCalls:
    """Hook the attention of every built-in layer, and count what it hands over.

    ``nn.TransformerEncoderLayer`` asks its attention for no weights
    (``need_weights=False``), so the hook finds None where they would be.

    Args:
        config: Sizes of the stack.

    Raises:
        ValueError: If the stack has no shortcuts.
    """
    encoder = to_torch_encoder(list(TransformerClassifier(config).blocks)).eval()
    return weights_handed_over(encoder, random_tokens(config, batch=1))


def weights_handed_over(encoder: nn.TransformerEncoder, tokens: Tensor) -> HookCalls:
    """Hook the attention of every layer of ``encoder``, and run it once.

    Args:
        encoder: The built-in stack; the hooks are taken away again.
        tokens: What it reads, (B, T, d_model).
    """
    seen: list[Tensor | None] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        seen.append(output[1])

    hooks = [
        cast(Any, layer).self_attn.register_forward_hook(keep)
        for layer in encoder.layers
    ]
    with torch.no_grad():
        encoder(tokens)
    for hook in hooks:
        hook.remove()
    return HookCalls(len(seen), sum(weights is not None for weights in seen))


class BuiltInClassifier(nn.Module):
    """Our classifier with ``nn.TransformerEncoder`` in the place of its blocks.

    It starts from the same weights. Its dropout is PyTorch's own and draws from the
    global generator.
    """

    def __init__(self, config: ClassifierConfig) -> None:
        """Build our classifier and put the built-in stack in.

        Args:
            config: Sizes and choices, with shortcuts.

        Raises:
            ValueError: If the blocks have no shortcuts.
        """
        super().__init__()
        self.ends = TransformerClassifier(config)
        self.encoder = to_torch_encoder(list(self.ends.blocks))
        self.ends.blocks = nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a sequence, (B, T, input_size) -> (B, 1)."""
        tokens = self.ends.tokens_of(x)
        allowed = self.ends.mask_of(tokens)
        hidden = None if allowed is None else ~allowed  # theirs: True = may not attend
        encoded = self.encoder(tokens, mask=hidden)
        read = self.ends.config.positions_read
        return self.ends.answer(encoded if read is None else encoded[:, read])


def timed_config(model: ClassifierConfig) -> TrainConfig:
    """Return a run of the model whose step two CPU cores finish in the time allowed.

    The batch is the lab's, or the lab's halved as often as the model needs.
    """
    batch_size = TrainConfig.batch_size
    while batch_size > 1 and batch_size * model.step_seconds > MAX_SECONDS:
        batch_size //= 2
    sizes = asdict(model)
    del sizes["input_size"]  # the task brings one number a step
    return TrainConfig(**sizes, batch_size=batch_size)


def time_stacks(config: TrainConfig, turns: int) -> Iterator[TimedTurn]:
    """Time both stacks in turn: a forward pass, then a training step, ``turns`` times.

    The forward pass is of the stack alone, at rest and without gradients, on a batch of
    random tokens. A training step is the ``Trainer``'s, with the whole classifier. Both
    are run once before, and every second turn goes the other way round.

    Args:
        config: Sizes of the model and of the batch.
        turns: How often, 1 to ``MAX_TURNS``; there are twice as many results.

    Raises:
        ValueError: If ``turns`` is out of range or the blocks have no shortcuts.
    """
    require_int("turns", turns, 1, MAX_TURNS)
    contenders = {"forward": _forwards(config), "train step": _steps(config)}
    for kind in KINDS:
        for run in contenders[kind]:
            _seconds_of(run)
    for turn in range(turns):
        for kind in KINDS:
            yield _timed(kind, contenders[kind], backwards=turn % 2 == 1)


def timings(turns: Sequence[TimedTurn]) -> list[Timing]:
    """Return the medians of each kind that has been timed."""
    found = []
    for kind in KINDS:
        own = [turn for turn in turns if turn.kind == kind]
        if own:
            ours, built_in = (
                median(getattr(turn, name) for turn in own)
                for name in ("ours", "built_in")
            )
            ratio = median(turn.ours / turn.built_in for turn in own)
            found.append(Timing(kind, len(own), ours, built_in, ratio))
    return found


def _torch_state(block: nn.Module) -> dict[str, Tensor]:
    state = {}
    for name, tensor in block.state_dict().items():
        ours = next(start for start in _LAYER_NAMES if name.startswith(start))
        state[name.replace(ours, _LAYER_NAMES[ours])] = tensor.clone()
    return state


def _forwards(config: TrainConfig) -> _Pair:
    blocks = TransformerClassifier(config.model).blocks.eval()
    encoder = to_torch_encoder(list(blocks))
    tokens = random_tokens(config.model, batch=config.batch_size)

    @torch.inference_mode()
    def ours() -> None:
        run_blocks(blocks, tokens)

    @torch.inference_mode()
    def built_in() -> None:
        encoder(tokens)

    return ours, built_in


def _steps(config: TrainConfig) -> _Pair:
    config = replace(config, max_steps=MAX_STEPS, eval_every=MAX_STEPS)
    ours = Trainer(config)
    built_in = Trainer(config, model=BuiltInClassifier(config.model))
    return ours.step, built_in.step


def _timed(kind: str, pair: _Pair, *, backwards: bool) -> TimedTurn:
    order = pair[::-1] if backwards else pair
    seconds = [_seconds_of(run) for run in order]
    return TimedTurn(kind, *(seconds[::-1] if backwards else seconds))


def _seconds_of(run: Callable[[], Any]) -> float:
    with torch.random.fork_rng(devices=[]):  # the built-in dropout draws from it
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
