"""The example of a template, run through an untrained model.

Nothing is trained here; the run makes every shape that of a real tensor.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from core.charts.stack_diagram import Shape, shapes_of
from core.checks import RefusedError, require_choice, require_int
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.initial import generator_from, linear
from core.templates import CHANNELS, IMAGE_SIDE, PATCH_SIDES, TEMPLATES, Template
from core.vocabulary import START, Vocabulary


class TemplateRun(NamedTuple):
    """The example of a template and what an untrained model makes of it.

    Attributes:
        name: The template's key in ``TEMPLATES``.
        words: The words in the source.
        patches: Number of patches before the words; 0 without an image.
        patch_side: Side of a patch in pixels.
        target: The words of the target; the model reads them after ``<s>``.
        shapes: The shape that leaves each part, see ``stack_diagram``; the model's
            vocabulary is the special tokens and all words of the whole example.
    """

    name: str
    words: tuple[str, ...]
    patches: int
    patch_side: int
    target: tuple[str, ...]
    shapes: dict[str, Shape]

    @property
    def template(self) -> Template:
        """The template."""
        return TEMPLATES[self.name]


def patches_of(image: Tensor, side: int) -> Tensor:
    """Return the square patches of an image as vectors, row by row.

    Args:
        image: (C, height, width).
        side: Side of a patch in pixels; it must divide height and width.

    Returns:
        (number of patches, C * side * side); each holds channel after channel.

    Raises:
        ValueError: If patches of this side do not fill the image.

    Reference:
        Dosovitskiy et al., 2021, section 3.1, arXiv:2010.11929.
    """
    channels, height, width = image.shape
    require_int("side", side, 1)
    if height % side or width % side:
        raise RefusedError(f"side ({side}) must divide {height} and {width}")
    tiles = image.unfold(1, side, side).unfold(2, side, side)  # (C, rows, columns, …)
    return tiles.permute(1, 2, 0, 3, 4).reshape(-1, channels * side * side)


def run_template(
    name: str,
    *,
    source_len: int,
    target_len: int,
    patch_side: int = 16,
    more: int = 0,
    **sizes: Any,
) -> TemplateRun:
    """Run a template's example through an untrained model.

    Args:
        name: A key of ``TEMPLATES``.
        source_len: How many words of the source are kept.
        target_len: How many words of the target are kept, the first ones.
        patch_side: Side of a patch in pixels, of ``PATCH_SIDES``.
        more: How often the last token of the source is repeated behind it.
        **sizes: Of the model, as ``EncoderDecoderConfig`` names them.

    Raises:
        ValueError: If there is no such template, or a size does not fit.
    """
    template = TEMPLATES[require_choice("name", name, TEMPLATES)]
    words = _shortened(template, source_len)
    most = len(template.target_tokens)
    target = template.target_tokens[: require_int("target_len", target_len, 1, most)]
    patches = _random_patches(patch_side) if template.has_image else None
    known = Vocabulary.of(template.words)
    model, ids = _model_for(known, words, patches, sizes)
    target_in = torch.tensor([[START, *known.encode(target)]])
    source = torch.cat([ids, ids[:, -1:].expand(1, require_int("more", more, 0))], 1)
    with torch.no_grad():
        shapes = shapes_of(source, target_in, model.explain(source, target_in))
    return TemplateRun(
        name=name,
        words=words,
        patches=0 if patches is None else len(patches),
        patch_side=patch_side,
        target=target,
        shapes=shapes,
    )


def embed_patches(model: EncoderDecoderTransformer, patches: Tensor) -> Tensor:
    """Give each patch a token of the source, made by one matrix, and return the ids.

    Words look their vector up in a table. A patch has no row there: a linear layer
    makes its vector, which is put in the place of a row, the last ones of the table.

    Args:
        model: Its source vocabulary has room for the patches behind the words.
        patches: (number of patches, numbers in a patch).

    Returns:
        Token numbers of the patches, (number of patches,).
    """
    d_model, vocab = model.config.d_model, model.config.source_vocab
    project = linear(patches.shape[1], d_model, generator=generator_from(0))
    ids = torch.arange(vocab - len(patches), vocab)
    with torch.no_grad():  # the model multiplies each row by √d_model
        model.source_embedding.weight[ids] = project(patches) / d_model**0.5
    return ids


def _shortened(template: Template, source_len: int) -> tuple[str, ...]:
    tokens = template.source_tokens
    require_int("source_len", source_len, 1, len(tokens))
    return tokens[-source_len:] if template.drops_first else tokens[:source_len]


def _random_patches(side: int) -> Tensor:
    if side not in PATCH_SIDES:
        listed = ", ".join(map(str, PATCH_SIDES))
        raise RefusedError(f"patch_side ({side}) must be one of {listed}")
    size = (CHANNELS, IMAGE_SIDE, IMAGE_SIDE)
    return patches_of(torch.rand(size, generator=generator_from(0)), side)


def _model_for(
    known: Vocabulary,
    words: Sequence[str],
    patches: Tensor | None,
    sizes: Mapping[str, Any],
) -> tuple[EncoderDecoderTransformer, Tensor]:
    """Return an untrained model and the source as it reads it, (1, S)."""
    config = EncoderDecoderConfig(
        source_vocab=len(known) + (0 if patches is None else len(patches)),
        target_vocab=len(known),
        **sizes,
    )
    model = EncoderDecoderTransformer(config).eval()
    ids = torch.tensor(known.encode(words))
    if patches is not None:
        ids = torch.cat([embed_patches(model, patches), ids])
    return model, ids[None]
