"""Words typed by a student, as tokens with labels and random embeddings.

Nothing is learned here: a word gets a random vector, the same one wherever it stands.
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from core.checks import MAX_SEED, RefusedError, require_int

MAX_TOKENS = 16
MAX_TEXT_LENGTH = 1_000
MAX_LABEL_LENGTH = 12


def split_into_tokens(text: str, *, max_tokens: int = MAX_TOKENS) -> list[str]:
    """Split a text at its spaces, one token a word.

    Whatever stands between spaces is a word: capitals, signs and tags are kept as they
    are typed. Letters with accents are brought to one form (NFC), so that a word typed
    in two ways is one word.

    Args:
        text: What was typed, at most ``MAX_TEXT_LENGTH`` characters.
        max_tokens: Largest number of words, at least 1.

    Returns:
        Between 1 and ``max_tokens`` words, none of them empty.

    Raises:
        ValueError: If the text has no word, too many words or too many characters.
    """
    require_int("max_tokens", max_tokens, 1)
    if not isinstance(text, str):
        raise RefusedError(f"text must be a string, got {type(text).__name__}")
    if len(text) > MAX_TEXT_LENGTH:
        raise RefusedError(
            f"text has {len(text)} characters and must have at most {MAX_TEXT_LENGTH}"
        )
    tokens = unicodedata.normalize("NFC", text).split()
    if not 1 <= len(tokens) <= max_tokens:
        raise RefusedError(
            f"text has {len(tokens)} words and must have between 1 and {max_tokens}"
        )
    return tokens


def token_labels(tokens: Sequence[str]) -> list[str]:
    """Return a label for each token, all of them different.

    A word that occurs once is its own label; a word that occurs again carries its
    position: ``the·0 cat saw the·3``. A label shows at most ``MAX_LABEL_LENGTH``
    characters of its word and ends in ``…`` where it is cut; characters that do not
    print are left out.

    Args:
        tokens: Words, as ``split_into_tokens`` returns them.

    Returns:
        As many labels as tokens.
    """
    return distinct_labels([shown_token(token) for token in tokens])


def distinct_labels(labels: Sequence[str | int]) -> list[str]:
    """Return labels of which no two are equal, themselves where that is so already.

    Where labels repeat, each of those gets its position behind it: equal labels would
    fall into one row of a chart.
    """
    texts = [str(label) for label in labels]
    count = Counter(texts)
    if len(count) == len(texts):
        return texts
    return [
        # A label with the sign in it could pass for a numbered one, so it gets one.
        f"{text}·{position}" if count[text] > 1 or "·" in text else text
        for position, text in enumerate(texts)
    ]


def position_labels(seq_len: int) -> list[str]:
    """Return the plain positions ``0, 1, …`` as labels where there is no text.

    Args:
        seq_len: Number of positions T.

    Raises:
        ValueError: If ``seq_len`` is negative or not a whole number.
    """
    return [str(position) for position in range(require_int("seq_len", seq_len, 0))]


def token_embeddings(tokens: Sequence[str], d_model: int, seed: int) -> Tensor:
    """Return a random vector for each token: the same word, the same vector.

    Entries are standard normal. A vector depends on the word, ``d_model`` and ``seed``
    alone: not on its place, its neighbours or the process that draws it.

    Args:
        tokens: Words; the empty list gives an empty table.
        d_model: Width of a token, at least 1.
        seed: Which set of vectors to draw, at least 0.

    Returns:
        Embeddings ``(T, d_model)``.

    Raises:
        ValueError: If ``d_model`` or ``seed`` is out of range.
    """
    require_int("d_model", d_model, 1)
    require_int("seed", seed, 0, MAX_SEED)
    table = torch.empty(len(tokens), d_model)
    for row, token in zip(table, tokens, strict=True):
        row.normal_(generator=_generator_of(token, seed))
    return table


def _generator_of(token: str, seed: int) -> torch.Generator:
    # hash() of a string differs between processes; a digest does not.
    named = f"{seed} {token}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(named, digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))


def shown_token(token: str) -> str:
    """Return a token cut to ``MAX_LABEL_LENGTH`` printable characters, never empty.

    Args:
        token: Whatever somebody typed.
    """
    printed = "".join(character for character in token if character.isprintable())
    if not printed:
        return "�"  # a word of nothing but invisible characters
    if printed == "__proto__":  # a key that charts in a browser cannot look up
        return "__proto\u2060__"
    if len(printed) <= MAX_LABEL_LENGTH:
        return printed
    return printed[: MAX_LABEL_LENGTH - 1] + "…"
