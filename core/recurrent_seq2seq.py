"""Two recurrent networks in series, and attention over the states of the first."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.attention import (
    AttentionOutput,
    masked_softmax,
    scaled_dot_product_attention,
)
from core.checks import RefusedError
from core.initial import generator_from, linear
from core.recurrent import initial_weights, torch_layer
from core.recurrent_config import RecurrentConfig
from core.source_memory import (
    Explained,
    Memory,
    check_tokens,
    embedding,
)
from core.vocabulary import PAD

_STEPS: dict[str, Callable[..., Tensor]] = {
    "gru": torch.gru_cell,
    "rnn": torch.rnn_tanh_cell,
}


def additive_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    w_query: Tensor,
    w_key: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
) -> AttentionOutput:
    """Let every query read a weighted sum of the values, scored by a small network.

    ``score(q, k) = v · tanh(W_q q + W_k k)``

    Args:
        query: What each target position looks for, (..., T, d_q).
        key: What each source position offers to be found by, (..., S, d_k).
        value: What each source position hands over, (..., S, d_v).
        w_query: Weight of the query, (a, d_q); a is the width of the network.
        w_key: Weight of the key, (a, d_k).
        v: Weight of the hidden units, (a,).
        mask: Boolean, broadcasts to (..., T, S). True means the query may attend to
            the key. None means every query may attend to every key.

    Returns:
        Output (..., T, d_v), weights and scores (..., T, S). A query that may attend
        to no key gets weights 0 and output 0.

    Raises:
        ValueError: If the mask is not boolean or does not fit.

    Reference:
        Bahdanau et al., 2015, "Neural Machine Translation by Jointly Learning to Align
        and Translate", section 3.1 and appendix A.1.2, arXiv:1409.0473.
    """
    return _additive(query @ w_query.mT, key @ w_key.mT, value, v, mask)


def _additive(
    query: Tensor, key: Tensor, value: Tensor, v: Tensor, mask: Tensor | None
) -> AttentionOutput:
    # The keys do not change from step to step: they come in multiplied already.
    hidden = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))  # (..., T, S, a)
    scores = hidden @ v  # (..., T, S)
    attn_weights = masked_softmax(scores, mask)
    return AttentionOutput(attn_weights @ value, attn_weights, scores)


class RecurrentState(NamedTuple):
    """How far a target has come.

    Attributes:
        hidden: State of the decoder, (B, hidden).
        keys: What attention compares the query with, (B, S, hidden).
        memory: What the encoder handed over.
    """

    hidden: Tensor
    keys: Tensor
    memory: Memory

    def select(self, sequences: Tensor) -> "RecurrentState":
        """Return the chosen sequences of the batch, in that order.

        Args:
            sequences: Their indices, (number chosen,); one may be chosen again and
                again.
        """
        hidden, keys, *memory = (
            part.index_select(0, sequences)
            for part in (self.hidden, self.keys, *self.memory)
            if part is not None
        )
        return RecurrentState(hidden, keys, Memory(*memory))


class RecurrentEncoderDecoder(nn.Module):
    """A recurrent network reads the source, a second one writes the target.

    The second starts from the context vector, the last state of the first. Without
    attention that vector is all it gets. With attention it reads all states of the
    first at every step: ``"additive"`` asks with the state before the step, and what it
    reads enters the step; ``"dot"`` asks with the state after the step. Either way the
    token comes from ``tanh(W [state; what was read])``.

    Padding must follow the tokens. It changes no state and is never attended to.

    Reference:
        Sutskever et al., 2014, arXiv:1409.3215 (none); Bahdanau et al., 2015,
        arXiv:1409.0473 (additive); Luong et al., 2015, sections 3 and 3.1,
        arXiv:1508.04025 (dot).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        """Draw all initial weights from one generator seeded ``config.seed``.

        Args:
            config: Sizes and choices, already checked.
        """
        super().__init__()
        self.config = config
        source, hidden = generator_from(config.seed), config.hidden_size
        self.source_embedding, self.target_embedding = (
            embedding(size, hidden, std=1.0, generator=source)
            for size in (config.source_vocab, config.target_vocab)
        )
        self.encoder, self.decoder = (
            torch_layer(
                config.cell,
                initial_weights(
                    config.cell, input_size=width, hidden_size=hidden, generator=source
                ),
            )
            for width in (hidden, config.decoder_input)
        )
        self.squeeze: nn.Module = nn.Identity()
        self.widen: nn.Module = nn.Identity()
        if config.squeezes:
            self.squeeze = linear(hidden, config.context_width, generator=source)
            self.widen = linear(config.context_width, hidden, generator=source)
        if config.attention == "additive":
            self.w_query, self.w_key = (
                linear(hidden, hidden, bias=False, generator=source) for _ in range(2)
            )
            self.v = nn.Parameter(
                linear(hidden, 1, generator=source).weight.detach()[0]
            )
        read = 1 if config.attention == "none" else 2
        self.combine = linear(read * hidden, hidden, generator=source)
        self.output = linear(hidden, config.target_vocab, generator=source)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Return the logits of the next token at every position.

        Args:
            source: Token numbers, (B, S).
            target_in: Token numbers from ``START`` on, (B, T).

        Returns:
            (B, T, V). Position t has read the target up to t.

        Raises:
            ValueError: If a shape does not fit, a token is not of its vocabulary, or
                padding stands before a token of the source.
        """
        return self.decode(self.encode(source), target_in)

    def encode(self, source: Tensor) -> Memory:
        """Return what the decoder gets of the source.

        The states at padding are 0, and so is the context vector of a source that is
        all padding.

        Args:
            source: Token numbers, (B, S).

        Raises:
            ValueError: As in ``forward``.
        """
        return self._encode(*self._embed_source(source))

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        """Return the logits, (B, T, V), of a target that starts from this memory.

        Args:
            memory: Of the encoder, or changed since.
            target_in: Token numbers from ``START`` on, (B, T).

        Raises:
            ValueError: As in ``forward``.
        """
        states, read = self._run(self.begin(memory), self._embed_target(target_in))
        return self._logits(states, read)

    def explain(self, source: Tensor, target_in: Tensor) -> Explained:
        """Return everything on the way to the logits.

        Takes what ``forward`` takes; its logits are equal. There is one map, of one
        head, (B, 1, T, S), or none without attention.
        """
        source_embedded, mask = self._embed_source(source)
        memory = self._encode(source_embedded, mask)
        target_embedded = self._embed_target(target_in)
        states, read = self._run(self.begin(memory), target_embedded)
        return Explained(
            logits=self._logits(states, read),
            source_embedded=source_embedded,
            memory=memory,
            target_embedded=target_embedded,
            encoder_maps=(),
            self_maps=(),
            cross_maps=() if read is None else (read.attn_weights[:, None],),
            encoder_states=(memory.states,),
            decoder_states=(states,),
        )

    def begin(self, memory: Memory) -> RecurrentState:
        """Return the state of a target without tokens, for ``advance``.

        Args:
            memory: Of the encoder, or changed since.

        Raises:
            ValueError: If the memory has no context vector.
        """
        if memory.final is None:
            raise RefusedError("memory.final must be a context vector, got None")
        additive = self.config.attention == "additive"
        keys = self.w_key(memory.states) if additive else memory.states
        return RecurrentState(self.widen(memory.final), keys, memory)

    def advance(
        self, tokens: Tensor, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        """Return the logits after one more token, and the state that holds it too.

        Args:
            tokens: The next token of every target, (B,); ``START`` first.
            state: Of ``begin``, or of the step before.

        Returns:
            Logits (B, V) and the next state.

        Raises:
            ValueError: If a shape does not fit or a token is not of the vocabulary.
        """
        states, read = self._run(state, self._embed_target(tokens[:, None]))
        return self._logits(states, read)[:, 0], state._replace(hidden=states[:, -1])

    def _embed_source(self, source: Tensor) -> tuple[Tensor, Tensor]:
        check_tokens("source", source, self.config.source_vocab)
        mask = source != PAD
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise RefusedError("padding of source must follow its tokens")
        return self.source_embedding(source), mask

    def _embed_target(self, target_in: Tensor) -> Tensor:
        check_tokens("target_in", target_in, self.config.target_vocab)
        return self.target_embedding(target_in)

    def _encode(self, embedded: Tensor, mask: Tensor) -> Memory:
        batch, hidden = len(embedded), self.config.hidden_size
        start = embedded.new_zeros(batch, hidden)
        states = _over_sequence(self.encoder, embedded, start)
        states = states * mask[..., None]  # (B, S, hidden)
        lengths = mask.sum(dim=1)
        final = states[torch.arange(batch, device=mask.device), lengths - 1]
        return Memory(states, mask, self.squeeze(final))

    def _run(
        self, state: RecurrentState, embedded: Tensor
    ) -> tuple[Tensor, AttentionOutput | None]:
        """Return the decoder's states, (B, T, hidden), and what it read."""
        if self.config.attention == "additive":
            return self._run_additive(state, embedded)
        states = _over_sequence(self.decoder, embedded, state.hidden)
        if self.config.attention == "none":
            return states, None
        read = scaled_dot_product_attention(
            states,
            state.keys,
            state.memory.states,
            mask=state.memory.mask[:, None],
            scale=1.0,
        )
        return states, read

    def _run_additive(
        self, state: RecurrentState, embedded: Tensor
    ) -> tuple[Tensor, AttentionOutput]:
        step, weights = _STEPS[self.config.cell], tuple(self.decoder.parameters())
        memory, mask = state.memory, state.memory.mask[:, None]
        hidden, states, reads = state.hidden, [], []
        for token in embedded.unbind(dim=1):  # each step waits for the one before
            query = self.w_query(hidden)[:, None]
            read = _additive(query, state.keys, memory.states, self.v, mask)
            hidden = step(torch.cat([token, read.output[:, 0]], -1), hidden, *weights)
            states.append(hidden)
            reads.append(read)
        joined = (torch.cat(parts, dim=1) for parts in zip(*reads, strict=True))
        return torch.stack(states, dim=1), AttentionOutput(*joined)

    def _logits(self, states: Tensor, read: AttentionOutput | None) -> Tensor:
        if read is not None:
            states = torch.cat([states, read.output], dim=-1)
        return self.output(torch.tanh(self.combine(states)))  # (B, T, V)


def _over_sequence(layer: nn.Module, x: Tensor, start: Tensor) -> Tensor:
    if len(x) == 0:  # PyTorch's layers take no empty batch
        return x.new_zeros(0, x.shape[1], start.shape[-1])
    return layer(x, start[None])[0]  # (B, T, hidden)
