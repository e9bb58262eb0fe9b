"""What the diagram of a template says in words and numbers."""

from typing import Any

from core.captions import counted
from core.charts.diagram import Edge, Node
from core.charts.stack_diagram import stack_diagram
from core.masks import causal_mask
from core.template_run import TemplateRun
from core.templates import CHANNELS, IMAGE_SIDE
from core.vocabulary import SPECIALS

_MOST_LETTERS = 24  # that a box has room for
_MAPS = {  # name in the shapes -> name in a sentence
    "encoder_map": "the encoder's map",
    "decoder_map": "masked self-attention's",
    "cross_map": "cross-attention's",
}
_CHANGES: dict[
    tuple[bool, ...], int
] = {  # which of the maps change their shape -> which answer says so
    (True, False, False): 0,
    (False, False, True): 1,
    (True, False, True): 2,
    (True, True, True): 3,
}


def template_diagram(
    run: TemplateRun, *, num_layers: int, norm_first: bool
) -> tuple[list[Node], list[Edge]]:
    """Return the stack's diagram with the words of a template on it."""
    template = run.template
    words = {
        "encoder": f"Encoder reads the source: {template.source}",
        "decoder": f"Decoder writes the target: {template.target}",
        "source": _source_label(run),
        "target": _beginning(["<s>", *run.target]),
        "softmax": "softmax → next token",
    }
    return stack_diagram(
        run.shapes,
        num_layers=num_layers,
        norm_first=norm_first,
        marked="memory",
        words=words,
        notes=(f"Memory: {template.memory}.", *vocabulary_lines(run)),
    )


def vocabulary_lines(run: TemplateRun) -> tuple[str, str]:
    """Say what the last number of the logits counts, in two lines."""
    size = run.shapes["linear"][-1]
    return (
        f"V = {size} tokens of the vocabulary: all words of source",
        f"and target at full length, and {', '.join(SPECIALS)}.",
    )


def example_sentence(run: TemplateRun) -> str:
    """Return the words that ran, source and target, as they were kept."""
    image = f"{run.patches} patches, then " if run.patches else ""
    return f"Example: {image}“{' '.join(run.words)}” → “{' '.join(run.target)}”"


def flow_sentence(run: TemplateRun) -> str:
    """Say what becomes of source and target, with the sizes on the diagram."""
    length, width = run.shapes["memory"]
    heads, target_len, _ = run.shapes["cross_map"]
    weights = target_len * length
    return (
        f"The source, {counted(length, 'token')}, becomes a memory of "
        f"{length} × {width} = {length * width:,} numbers. The decoder reads "
        f"{counted(target_len, 'token')}, <s> first; a head of cross-attention has "
        f"{target_len} × {length} = {counted(weights, 'weight')}, {heads} × "
        f"{weights:,} = {heads * weights:,} a layer."
    )


def patch_sentence(run: TemplateRun) -> str:
    """Say how the image becomes tokens; empty where there is none."""
    if not run.patches:
        return ""
    side, across = run.patch_side, IMAGE_SIDE // run.patch_side
    numbers, width = side * side * CHANNELS, run.shapes["memory"][1]
    return (
        f"The image: {IMAGE_SIDE} ÷ {side} = {across} patches a side, {across} × "
        f"{across} = {run.patches} of {side} × {side} × {CHANNELS} = {numbers:,} "
        f"numbers each. One matrix, {width} × {numbers:,}, makes a token of a patch; "
        f"with the question's {counted(len(run.words), 'word')} that is "
        f"{run.patches + len(run.words)} tokens."
    )


def one_sequence_sentence(run: TemplateRun) -> str:
    """Compare the stack with a decoder-only model, in pairs that masks let attend."""
    source_len, target_len = run.shapes["memory"][0], run.shapes["target"][0]
    within = int(causal_mask(target_len).sum())
    here = source_len**2 + within + target_len * source_len
    joined = int(causal_mask(source_len + target_len).sum())
    return (
        f"As drawn a query may read a key in {here:,} pairs a head and layer: "
        f"{source_len**2:,} in the encoder, {within:,} in the decoder, "
        f"{target_len * source_len:,} across. As one causal sequence of "
        f"{source_len + target_len} tokens, decoder-only, it is {joined:,}; "
        f"{_lost(here - joined)}"
    )


def longer_source_answer(run: TemplateRun, longer: TemplateRun) -> tuple[int, str]:
    """Return which answer is right on a longer source, and the reveal.

    Args:
        run: Before.
        longer: The same with more source tokens.
    """
    changed, told = [], []
    for part, name in _MAPS.items():
        before, after = run.shapes[part], longer.shapes[part]
        changed.append(before != after)
        told.append(
            f"{name} goes from {before} to {after}"
            if before != after
            else f"{name} stays {before}"
        )
    sentence = f"{', '.join(told)}: heads, queries, keys."
    return _CHANGES[tuple(changed)], sentence[0].upper() + sentence[1:]


def shapes_shown(run: TemplateRun) -> dict[str, Any]:
    """Return the shapes under the names that the code uses."""
    names = {
        "memory": "memory",
        "logits": "linear",
        "encoder map": "encoder_map",
        "self map": "decoder_map",
        "cross map": "cross_map",
    }
    return {name: str(run.shapes[part]) for name, part in names.items()}


def _source_label(run: TemplateRun) -> str:
    if not run.patches:
        return _beginning(run.words)
    across = IMAGE_SIDE // run.patch_side
    return f"{across} × {across} patches, {counted(len(run.words), 'word')}"


def _beginning(tokens: list[str] | tuple[str, ...]) -> str:
    """Return as many of the first tokens as a box has room for."""
    shown = " ".join(tokens)
    if len(shown) <= _MOST_LETTERS:
        return shown
    return shown[: _MOST_LETTERS - 1].rsplit(" ", 1)[0] + " …"


def _lost(pairs: int) -> str:
    if pairs == 0:
        return "the same, as a source of one token has none after it."
    return (
        f"the {pairs:,} fewer are source tokens that read later source tokens."
        if pairs > 1
        else "the one fewer is a source token that reads a later one."
    )
