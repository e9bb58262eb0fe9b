"""The page on attention maps: whose weights, which map, and the pictures of the rows.

The other views stand in files of their own: the film of the maps, weight beside
influence, and what is left with heads switched off.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from pages._ui import live_run, parts
from pages._ui.controls import Controls

VIEWS = ["Rows", "Maps", "Weight against influence", "Switch off", "Several sequences"]
ROWS, MAPS, INFLUENCE, OFF, SEVERAL = VIEWS
HEIGHT = 400
_SOURCES = ["shipped", "yours"]
_LAST = 999  # test sequence
_COUNTS = [2, 5, 10, 20, 50, 100, 200, 500, 1000]
_PRESET = 50  # of them; a slider moved reads them anew
_LIMITS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]  # of the colours
_SECONDS = 0.6  # about what the maps of several sequences may take
_MAPS_COST = 20  # reading all maps, as answers of one sequence
_MOST_BARS = 6_000
_PANEL = 64  # pixels, with its name


class Chosen(NamedTuple):
    """What the controls say: which sequence, and which map of it."""

    sequence: int
    position: int
    layer: int
    head: int
    limit: float


class Shown(NamedTuple):
    """The model that is read, and the hash by which its results are kept."""

    trained: Any
    reason: str  # why it is not the visitor's own though that was chosen
    key: str
    model: Any
    sound: bool  # whether its answers are numbers

    @property
    def config(self) -> Any:
        """Sizes and choices of the model."""
        return self.trained.config


def open_tab(tabs: Sequence[Any]) -> tuple[str, Any]:
    """Return name and place of the view that is open."""
    return next(pair for pair in zip(VIEWS, tabs, strict=True) if pair[1].open)


def choose_source(c: Controls) -> str:
    """Return whose weights are read."""
    return c.choice("Whose weights", "source", _SOURCES)


def pick_model(source: str) -> Shown:
    """Return the model to read; the shipped one where there is none of the visitor's.

    A run that rests keeps a copy of its weights for this page.
    """
    from core import trained

    own, reason = None, ""
    if source == "yours":
        own, reason = live_run.own_weights("marker_task", trained.copied_from, _size_of)
    picked = own or trained.read_shipped()
    return Shown(picked, reason, picked.key, *_built(picked.key, picked))


def _size_of(config: Any) -> int:
    return config.model.num_parameters


@st.cache_resource(max_entries=16, show_spinner=False)
def _built(key: str, _trained: Any) -> tuple[Any, bool]:
    from core import reading, trained

    model = trained.build(_trained)
    return model, reading.answers_in_numbers(model)


def tell(shown: Shown) -> None:
    """Say whose maps these are, and what a reader has to know first."""
    from core import reading_story, trained

    own = shown.trained is not trained.read_shipped()
    if shown.reason:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                ":material/info: The shipped run is shown: "
                f"{parts.plain(shown.reason)}."
            )
            st.page_link(
                "pages/08_marker_task.py", label="Train one", icon=":material/flag:"
            )
    whose = "Your run" if own else "Shipped run"
    words = reading_story.run_words(shown.trained, whose, sound=shown.sound)
    st.markdown(f":small[{parts.plain(words)}]", help=parts.plain(shown.trained.origin))
    for doubt in reading_story.doubts(shown.trained, sound=shown.sound):
        parts.note(doubt)


def read(shown: Shown, chosen: Chosen) -> Any:
    """Return what the model attends to in the chosen test sequence."""
    from core import reading_story

    return reading_story.require_sound(
        _read(shown.key, shown.model, chosen.sequence, chosen.position)
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(key: str, _model: Any, sequence: int, position: int) -> Any:
    from core import reading

    return reading.read_sequence(_model, sequence=sequence, position=position)


def choose(c: Controls, view: str, config: Any, *, plays: bool) -> Chosen:
    """Return which test sequence and which map are shown; a film shows every map."""
    mean = "The mean is over all heads of the layer."
    heads, layers = range(config.num_heads + 1), config.num_layers
    idle = view == OFF or (view == MAPS and plays)
    return Chosen(
        layer=c.whole("Layer", "layer", 1, layers, layers, disabled=idle),
        head=c.listed(
            "Head",
            "head",
            heads,
            0,
            shown=lambda head: str(head) if head else "mean",
            help_text=mean,
            disabled=idle,
        ),
        sequence=c.whole(
            "Test sequence", "sequence", 0, _LAST, 0, disabled=view in (OFF, SEVERAL)
        ),
        position=c.whole(
            "Marker position at test time",
            "position",
            0,
            config.seq_len - 1,
            0,
            help_text="Training always had it at position 0.",
            disabled=view == OFF,
        ),
        limit=_choose_limit(c, config) if view in (MAPS, SEVERAL) else 1.0,
    )


def _choose_limit(c: Controls, config: Any) -> float:
    from core import reading_story

    preset = reading_story.preset_limit(config)
    return c.listed(
        "Colours end at a weight of",
        "limit",
        _LIMITS,
        preset,
        shown="{:g}".format,
        help_text="Larger weights take the last colour.",
    )


def draw_rows(shown: Shown, reading: Any, chosen: Chosen) -> None:
    """Draw the row of the readout in every layer and head."""
    from core import charts, reading_story
    from core.charts.rows import panels_frame

    config = shown.config
    layers = range(1, config.num_layers + 1)
    if reading.rows.numel() > _MOST_BARS:
        layers = range(chosen.layer, chosen.layer + 1)
        parts.note("Too many bars for one picture: only the chosen layer is drawn.")
    laid = panels_frame(
        reading_story.row_panels(reading, layers),
        reading_story.key_names(reading.labels),
        marker=reading.marker_at,
        chosen=reading_story.map_name(chosen.layer, chosen.head, config.num_heads),
    )
    said = " ".join(reading_story.row_sentences(reading, config, head=chosen.head))
    parts.bare_chart(
        charts.row_panels,
        laid.frame,
        key="reading_rows",
        alt=said,
        across=laid.across,
        down=laid.down,
        num_keys=len(reading.labels),
        title=f"What {reading_story.reader(config)} reads in this sequence",
        height=max(300, 110 + 105 * laid.down),
    )
    parts.sentence(said)
    parts.sentence(reading_story.answer_sentence(reading))


def choose_count(c: Controls, config: Any) -> int:
    """Return of how many test sequences the maps are taken together."""
    from core import reading_story

    most = reading_story.affordable(
        config, _MAPS_COST, seconds=_SECONDS, fewest=_COUNTS[0]
    )
    counts = [count for count in _COUNTS if count <= most]
    preset = min(_PRESET, counts[-1])
    return c.listed("Test sequences taken together", "count", counts, preset)


@st.cache_resource(max_entries=4, show_spinner=False)
def _many(key: str, _model: Any, count: int, position: int) -> Any:
    from core import reading

    return reading.read_many(_model, count=count, position=position)


def draw_several(shown: Shown, count: int, chosen: Chosen) -> None:
    """Draw the mean map of several sequences, and how far its weights spread."""
    from core import reading_story
    from core.charts.image_grid import pixel_frame, pixel_map
    from core.charts.tidy import to_array

    reading_story.require_affordable(shown.config, count * _MAPS_COST)
    many = _many(shown.key, shown.model, count, chosen.position)
    name = reading_story.map_name(chosen.layer, chosen.head, shown.config.num_heads)
    said = reading_story.many_sentence(many, chosen.layer, chosen.head)
    titles = f"{name}: mean", f"{name}: standard deviation"
    maps = (many.mean, many.spread)
    for column, title, every in zip(st.columns(2), titles, maps, strict=True):
        matrix = reading_story.of_head(every, chosen.layer, chosen.head)
        frame = pixel_frame(to_array(matrix), limit=chosen.limit, dark=parts.is_dark())
        frame = frame.assign(**reading_story.map_axes(shown.config))
        with column:
            parts.bare_chart(
                pixel_map,
                frame,
                key=f"reading_{title.rsplit(' ', 1)[-1]}",
                alt=said,
                title=title,
                limit=chosen.limit,
                height=HEIGHT,
            )
    parts.sentence(said)


def look_inside(view: str, shown: Shown, reading: Any) -> None:
    """Show the functions of core that work out the numbers of a view."""
    from core import ablation, attention, influence, models
    from core import reading as readings

    functions: dict[str, list[Any]] = {
        ROWS: [models.TransformerClassifier.readout_rows, readings.read_sequence],
        MAPS: [
            models.TransformerClassifier.attention_maps,
            attention.scaled_dot_product_attention,
        ],
        INFLUENCE: [
            influence.occlusion,
            influence.gradient_times_input,
            influence.contributions,
            influence.rank_correlation,
        ],
        OFF: [ablation.without_heads, ablation.accuracy_without],
        SEVERAL: [readings.read_many],
    }
    shapes = {
        "inputs (T,)": reading.inputs,
        "maps (L, H, S, S)": reading.maps,
        "rows (L, H, S)": reading.rows,
        "parameters": f"{shown.config.num_parameters:,}",
    }
    parts.look_inside("reading", functions[view], shapes)
