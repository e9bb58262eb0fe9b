"""PyTorch's ``nn.Transformer``, taken over weight by weight."""

from typing import cast

import torch.nn.functional as F
from torch import nn

from core.checks import RefusedError
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer

_ENCODER_PARTS = {  # PyTorch's names to ours
    "self_attn": "attention",
    "linear1": "feed_forward.expand",
    "linear2": "feed_forward.contract",
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
}
_DECODER_PARTS = {
    "self_attn": "self_attention",
    "multihead_attn": "cross_attention",
    "linear1": "feed_forward.expand",
    "linear2": "feed_forward.contract",
    "norm1": "self_attention_norm",
    "norm2": "cross_attention_norm",
    "norm3": "feed_forward_norm",
}
_NORM_EPS = 1e-5
_PARTS = {"encoder": _ENCODER_PARTS, "decoder": _DECODER_PARTS}


def from_torch(
    transformer: nn.Transformer,
    *,
    source_embedding: nn.Embedding,
    target_embedding: nn.Embedding,
    output: nn.Linear,
    max_len: int = 64,
) -> EncoderDecoderTransformer:
    """Return our model with a copy of the weights of an ``nn.Transformer``.

    The model around it must embed with ``√d_model`` and add sinusoids, as ours does.

    Args:
        transformer: With the exact GELU and as many encoder layers as decoder layers.
        source_embedding: Its table of the source vocabulary.
        target_embedding: Its table of the target vocabulary; the same object for a
            shared one.
        output: From ``d_model`` to the target vocabulary.
        max_len: Positions held ready.

    Raises:
        ValueError: If the layers are of a kind that ours are not.
    """
    config = _config_of(transformer, source_embedding, target_embedding, max_len)
    model = EncoderDecoderTransformer(config).to(output.weight)
    weights = {_our_name(k): v for k, v in transformer.state_dict().items()}
    around = {
        "source_embedding": source_embedding,
        "target_embedding": target_embedding,
        "output": output,
    }
    for name, module in around.items():
        weights |= {f"{name}.{k}": v for k, v in module.state_dict().items()}
    model.load_state_dict(weights)
    return model.train(transformer.training)


def _config_of(
    transformer: nn.Transformer,
    source_embedding: nn.Embedding,
    target_embedding: nn.Embedding,
    max_len: int,
) -> EncoderDecoderConfig:
    _check_convertible(transformer)
    layer = cast(nn.TransformerEncoderLayer, transformer.encoder.layers[0])
    return EncoderDecoderConfig(
        source_vocab=source_embedding.num_embeddings,
        target_vocab=target_embedding.num_embeddings,
        d_model=transformer.d_model,
        num_heads=transformer.nhead,
        num_layers=len(transformer.encoder.layers),
        d_ff=layer.linear1.out_features,
        dropout=layer.dropout.p,
        norm_first=layer.norm_first,
        last_norm=transformer.encoder.norm is not None,
        shared_embeddings=source_embedding is target_embedding,
        max_len=max_len,
    )


def _check_convertible(transformer: nn.Transformer) -> None:
    encoder, decoder = transformer.encoder, transformer.decoder
    layers = [*encoder.layers, *decoder.layers]
    norms = [m for m in transformer.modules() if isinstance(m, nn.LayerNorm)]
    rules = {
        "as many encoder layers as decoder layers": len(encoder.layers)
        == len(decoder.layers),
        "activation 'gelu'": all(_is_exact_gelu(layer.activation) for layer in layers),
        "bias True": all(layer.linear1.bias is not None for layer in layers),
        "layer_norm_eps 1e-05": all(norm.eps == _NORM_EPS for norm in norms),
        "a last norm on both sides or on neither": (encoder.norm is None)
        == (decoder.norm is None),
    }
    for rule, holds in rules.items():
        if not holds:
            raise RefusedError(f"transformer must have {rule}")


def _is_exact_gelu(activation: object) -> bool:
    if isinstance(activation, nn.GELU):
        return activation.approximate == "none"
    return activation is F.gelu


def _our_name(name: str) -> str:
    side, kind, *rest = name.split(".")
    if kind == "norm":
        return ".".join([f"{side}_norm", *rest])
    number, part, *rest = rest
    ours = ".".join([side, number, _PARTS[side][part], *rest])
    return ours.replace("in_proj_", "in_proj.")
