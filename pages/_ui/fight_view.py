"""The race's own pieces: its settings, the shipped picture, and the same run here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

from pages._ui import measured_run, parts
from pages._ui.controls import Controls
from pages._ui.leases import Look

VIEWS = ["Curves", "Gradient ruler", "Parameters"]
HEIGHT = 340
_HEAD_HEIGHT = 91  # pixels of button and bar, so that both pictures stand level
_LENGTHS = [10, 20, 30, 60, 120, 200, 300]
_STEPS = [100, 200, 300, 600]
_BIASES = (-2, 5)
_MODELS = "Models"
_OPENED = "LSTM, bias set"
_NAMES = ["Transformer", "RNN", "LSTM", "GRU", _OPENED]  # in the order of core
_ALT = "Runs made here so far; the sentences below give their numbers"
_MEASURED = "Seconds are measured here, beside whatever else is computed."
_HEADER = (
    "model",
    "width",
    "parameters",
    "of Transformer",
    "a step (by seed)",
    "accuracy",
)
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "Equal parameters: does a wider RNN still flip a coin?": {
        "view": "Curves", "length": 60, "equal": True, "kind": "accuracy",
        "against": "steps",
    },
    "Before training, at 60 tokens: whose gradient reaches the marker?": {
        "view": "Gradient ruler", "length": 60, "equal": False, "moment": "before",
    },
    "300 tokens: who still finds the marker?": {
        "view": "Curves", "length": 300, "equal": False, "kind": "accuracy",
        "against": "steps",
    },
}  # fmt: skip


class Chosen(NamedTuple):
    """What the controls say of a race."""

    seq_len: int
    equal: bool
    names: tuple[str, ...]
    forget_bias: int
    steps: int
    num_seeds: int


class Loaded(NamedTuple):
    """What core makes of the settings.

    Attributes:
        config: The race to run here; None where it was refused.
        refusal: The sentence of the refusal.
        shipped: The shipped race of these settings, if there is one.
        shipped_config: Its settings.
    """

    config: Any
    refusal: str
    shipped: Any
    shipped_config: Any


class Shown(NamedTuple):
    """What the controls say of the curves."""

    kind: str
    against: str


def choose_look(c: Controls) -> Shown:
    """Return which curves are drawn, and against what."""
    return Shown(
        c.choice("Curves of", "kind", ["accuracy", "loss"]),
        c.choice("Against", "against", ["steps", "seconds"]),
    )


def choose_moment(c: Controls) -> str:
    """Return when the ruler is read."""
    return c.choice(
        "Ruler read", "moment", ["before", "after"], shown=lambda m: f"{m} training"
    )


def choose(c: Controls) -> Chosen:
    """Return the settings of a race."""
    seq_len = c.listed("Tokens", "length", _LENGTHS, 60)
    equal = c.switch(
        "Equal parameters",
        "equal",
        False,
        help_text="Off: every model has width 32. On: hidden states are as wide as "
        "brings the parameters nearest to the Transformer's.",
    )
    st.markdown("**Run here**")
    names = c.several(_MODELS, "models", _NAMES, _NAMES, most=len(_NAMES))
    bias = c.whole(
        "Forget bias that is set",
        "bias",
        *_BIASES,
        3,
        help_text="Of the last LSTM, at the start. PyTorch draws it near 0.",
    )
    steps = c.listed("Steps", "steps", _STEPS, 300)
    return Chosen(
        seq_len, equal, tuple(names), bias, steps, c.whole("Seeds", "seeds", 1, 10, 1)
    )


def load(chosen: Chosen) -> Loaded:
    """Return the race to run here and the shipped one."""
    from core import fair_fight, fight_config
    from core.checks import RefusedError

    key = chosen.seq_len, chosen.equal
    shipped = fair_fight.read_fights().get(key), fair_fight.shipped_config(*key)
    if not chosen.names:
        return Loaded(None, f"{_MODELS} needs at least one.", *shipped)
    everyone = fight_config.contenders(chosen.forget_bias)
    picked = [who for who, n in zip(everyone, _NAMES, strict=True) if n in chosen.names]
    try:
        config = fight_config.FightConfig(
            tuple(picked),
            seq_len=chosen.seq_len,
            steps=chosen.steps,
            num_seeds=chosen.num_seeds,
            equal_parameters=chosen.equal,
        )
    except RefusedError as refusal:
        return Loaded(None, str(refusal), *shipped)
    return Loaded(config, "", *shipped)


def draw_curves(loaded: Loaded, chosen: Chosen, shown: Shown) -> None:
    """Draw the curves of the shipped race and of the one run here, side by side."""

    def draw(steps: Any, race: Any, key: str, alt: str, title: str) -> None:
        from core import charts, fight_results
        from core.charts.race import race_frame

        curves = fight_results.seed_curves(steps, shown.kind)
        medians = fight_results.median_curves(curves)
        timed = shown.against == "seconds"
        parts.bare_chart(
            charts.race,
            race_frame(curves, medians, against=shown.against),
            key=f"fight_curves_{key}",
            alt=alt,
            series=_series(race),
            kind=shown.kind,
            against=shown.against,
            x_end=fight_results.seconds_end(steps) if timed else race.steps,
            dashed=key == "shipped",
            title=title,
            height=HEIGHT,
        )

    from core import fight_story

    def say(steps: Any) -> list[str]:
        return fight_story.sentences(steps, shown.against)

    lines = "Thin: one seed. Thick: the median, dashed where shipped."
    _beside(loaded, chosen, draw, say, lines, timed=shown.against == "seconds")


def draw_rulers(loaded: Loaded, chosen: Chosen, moment: str) -> None:
    """Draw the gradient along the sequence, shipped and run here, side by side."""
    from core import fight_results, fight_story

    def draw(steps: Any, race: Any, key: str, alt: str, title: str) -> None:
        from core import charts, fight_story
        from core.charts.race import ruler_frame

        parts.bare_chart(
            charts.gradient_ruler,
            ruler_frame(fight_results.rulers(steps, moment), floor=fight_story.FLOOR),
            key=f"fight_ruler_{key}",
            alt=alt,
            series=_series(race),
            seq_len=race.seq_len,
            floor=fight_story.FLOOR,
            dashed=key == "shipped",
            title=title,
            height=HEIGHT,
        )

    def say(steps: Any) -> list[str]:
        return fight_story.rulers_told(steps, moment)

    _beside(loaded, chosen, draw, say, "Dashed where shipped.")


def draw_parameters(loaded: Loaded, chosen: Chosen) -> None:
    """Show what each model costs: width, parameters, time a step."""
    from core import fight_config, fight_story

    shipped = loaded.shipped
    race = fight_config.FightConfig(
        seq_len=chosen.seq_len, equal_parameters=chosen.equal
    )
    st.subheader("Shipped runs" if shipped else "No shipped runs", anchor=False)
    _table(race, shipped.steps if shipped else ())
    parts.sentence(fight_story.parameters_sentence(race))
    if shipped:
        st.caption(parts.plain(shipped.origin))
    st.subheader("Run here", anchor=False)
    _run_here(loaded, lambda look: _table(look.config, look.records))
    st.caption(_MEASURED)


def predict(chosen: Chosen, shown: Shown) -> None:
    """Ask about a shipped race that is not on view."""
    from core import fair_fight, fight_questions, fight_results, fight_story

    on_view = shown.against == "seconds" and chosen.seq_len == 60
    name = "long" if on_view else "clock"
    question = fight_questions.QUESTIONS[name]
    shipped = fair_fight.read_fights()[question.race]
    found = fight_results.standings(shipped.steps)
    parts.predict(
        f"fight_predict_{name}",
        question.text,
        [parts.Choice(*choice) for choice in question.choices],
        question.answer(found),
        parts.plain(fight_story.reveal(found)),
    )


def inside(config: Any) -> None:
    """Show the code of the race."""
    from core import fair_fight, fight_config

    shapes: Mapping[str, Any] = {}
    if config is not None:
        counts = {c.name: config.num_parameters(c) for c in config.contenders}
        shapes = {name: f"{count:,} parameters" for name, count in counts.items()}
    parts.look_inside(
        "fight",
        [
            fair_fight.gradient_ruler,
            fair_fight.watch_fight,
            fair_fight.trainer_of,
            fight_config.hidden_size_for,
        ],
        shapes,
    )


def _beside(
    loaded: Loaded,
    chosen: Chosen,
    draw: Callable[[Any, Any, str, str, str], None],
    say: Callable[[Sequence[Any]], list[str]],
    lines: str,
    *,
    timed: bool = False,
) -> None:
    """Draw the shipped race on the left, and the one run here on the right."""
    from core import fight_story

    left, right = st.columns(2, gap="medium")
    with left:
        if loaded.shipped is None:
            parts.note(
                f"No runs of {chosen.seq_len} tokens with these sizes are shipped: run "
                "them here."
            )
        else:
            shipped, race = loaded.shipped, loaded.shipped_config
            with st.container(height=_HEAD_HEIGHT, border=False):
                parts.sentence(f"{fight_story.recipe_sentence(race)} {lines}")
            said = say(shipped.steps)
            if absent := fight_story.absent_sentence(race, _series(race)):
                said.append(absent)
            title = f"Shipped: {fight_story.setting_words(race)}"
            draw(shipped.steps, race, "shipped", " ".join(said), title)
            for sentence in said:
                parts.sentence(sentence)
            st.caption(parts.plain(shipped.origin))

    def live(look: Look) -> None:
        title = f"Run here: {fight_story.setting_words(look.config)}"
        draw(look.records, look.config, "here", _ALT, title)
        for sentence in say(look.records):
            parts.sentence(sentence)
        if timed and look.records:
            st.caption(_MEASURED)

    with right:
        _run_here(loaded, live)


def _run_here(loaded: Loaded, draw: Callable[[Look], None]) -> None:
    from core import fight_story

    config = loaded.config
    if loaded.refusal:
        parts.refused(loaded.refusal)
    measured_run.measured(
        "fair_fight/race",
        config,
        _measurement,
        total=lambda race: race.num_results,
        label="Run it here",
        ahead="" if config is None else fight_story.budget_sentence(config),
        draw=draw,
        unit="steps and looks",
    )


def _measurement(config: Any) -> Any:
    from core import fair_fight, measuring

    return measuring.Measurement(fair_fight.watch_fight(config), config.num_results)


def _series(race: Any) -> tuple[str, ...]:
    """Return all five names, so that a model keeps its colour in every race."""
    from core import fight_config

    own = [who.forget_bias for who in race.contenders if who.forget_bias is not None]
    return tuple(who.name for who in fight_config.contenders(*own[:1]))


def _table(race: Any, steps: Any) -> None:
    from core import fight_story

    rows = fight_story.table_rows(race, steps)
    cleaned = [[parts.plain(text) for text in row] for row in rows]
    st.markdown(parts.table(_HEADER, cleaned))
