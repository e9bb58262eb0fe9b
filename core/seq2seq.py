"""Sequence to sequence: the models and how they are decoded, in one place."""

from core.decoding import greedy_decode
from core.encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformer
from core.recurrent_seq2seq import RecurrentConfig, RecurrentEncoderDecoder

__all__ = [
    "EncoderDecoderTransformer",
    "RecurrentEncoderDecoder",
    "greedy_decode",
    "make_model",
]


def make_model(
    config: EncoderDecoderConfig | RecurrentConfig,
) -> EncoderDecoderTransformer | RecurrentEncoderDecoder:
    """Return the model that a configuration describes.

    Args:
        config: Sizes and choices, already checked.
    """
    if isinstance(config, EncoderDecoderConfig):
        return EncoderDecoderTransformer(config)
    return RecurrentEncoderDecoder(config)
