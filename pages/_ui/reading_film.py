"""The maps of every layer and head: all in one picture, one large, and as a film."""

from typing import Any

import streamlit as st

from pages._ui import map_view, parts
from pages._ui.controls import Controls
from pages._ui.reading_view import Chosen, Shown

_SPEEDS = {"slow": 2.0, "medium": 1.0, "fast": 0.4}  # seconds a map
_PLAYS = "reading_plays"  # session key: place of the next map; None at rest
_MOST_PIXELS = 1_000_000  # of all maps in one picture
_ROOM = (380, 560)  # pixels of that picture, down and across
_HEIGHT = 422  # of a map as a picture
_PLACE = _HEIGHT + 18  # for chart and film alike, so that nothing below moves
_PLAYING = "Each map is named above it. Pause the film to read one of them in numbers."
_ALT = "One map after the other, layer by layer; its title names it"


def choose_speed(c: Controls) -> float:
    """Return how many seconds each map of the film stands."""
    return _SPEEDS[c.listed("Speed of the film", "speed", list(_SPEEDS), "medium")]


def plays() -> bool:
    """Return whether the film goes on, whatever map the controls name."""
    return st.session_state.get(_PLAYS) is not None


def draw(shown: Shown, reading: Any, chosen: Chosen, seconds: float) -> None:
    """Draw all maps small and one large, with what steps and plays through them."""
    from core import reading_story

    config = shown.config
    limit = chosen.limit
    every, large = st.columns(2, gap="medium")
    with every:
        _draw_every(shown, reading, chosen)
    with large:
        _buttons(config, chosen)
        with st.container(height=_PLACE, border=False):
            if plays():
                _play(reading, config, seconds, limit)
            else:
                _draw_large(reading, config, chosen, limit)
    with every:
        said = reading_story.map_sentence(reading, chosen.layer, chosen.head)
        parts.sentence(_PLAYING if plays() else said)
        with st.container(horizontal=True):
            _offer_film(reading, config, seconds, limit)
            if not plays():
                matrix = reading_story.of_head(reading.maps, chosen.layer, chosen.head)
                map_view.offer_cells(
                    matrix, "reading_cells", kind="weight", labels=reading.labels
                )


def _draw_every(shown: Shown, reading: Any, chosen: Chosen) -> None:
    from core import reading_story

    layers = (1, shown.config.num_layers)
    if reading.maps.numel() > _MOST_PIXELS:
        layers = (chosen.layer, chosen.layer)
    which = (chosen.sequence, chosen.position, *layers)
    words = reading_story.every_words(chosen.limit)
    picture = _every(shown.key, reading, which, chosen.limit, parts.is_dark())
    st.image(picture, alt=words)
    st.caption(words)


@st.cache_data(max_entries=64, show_spinner=False)
def _every(
    key: str, _reading: Any, which: tuple[int, ...], limit: float, dark: bool
) -> bytes:
    """Return the maps of the layers that ``which`` ends with, as one PNG; kept."""
    from core.charts.image_grid import image_grid, png_bytes
    from core.charts.tidy import to_array

    *_, first, last = which
    maps = _reading.maps[first - 1 : last]
    down, across = (
        max(1, room // n) for room, n in zip(_ROOM, maps.shape, strict=False)
    )
    picture = image_grid(
        to_array(maps),
        row_labels=[f"layer {layer}" for layer in range(first, last + 1)],
        column_labels=[f"head {head + 1}" for head in range(maps.shape[1])],
        limit=limit,
        cell=max(1, min(down, across) // maps.shape[-1]),
        dark=dark,
    )
    return png_bytes(picture)


def _buttons(config: Any, chosen: Chosen) -> None:
    """Draw what steps and plays; a film that stops leaves the controls at its map."""
    with st.container(horizontal=True, gap="small"):
        for name, icon, by in (("Back", "skip_previous", -1), ("Next", "skip_next", 1)):
            st.button(
                name,
                key=f"reading_{name.lower()}",
                icon=f":material/{icon}:",
                disabled=plays(),
                on_click=_step,
                args=(config, chosen, by),
            )
        st.button(
            "Pause" if plays() else "Play",
            key="reading_play",
            icon=f":material/{'pause' if plays() else 'play_arrow'}:",
            type="primary",
            on_click=_stop if plays() else _start,
            args=(config, chosen),
        )


def _step(config: Any, chosen: Chosen, by: int) -> None:
    place = _place(config, chosen) + by
    if by > 0 and not chosen.head:
        place = _place(config, chosen)
    _show(config, place)


def _start(config: Any, chosen: Chosen) -> None:
    st.session_state[_PLAYS] = _place(config, chosen)


def _stop(config: Any, _: Chosen) -> None:
    _show(config, st.session_state.pop(_PLAYS, 1) - 1)


def _place(config: Any, chosen: Chosen) -> int:
    """Return the place of a map in the film; before the heads stands their mean."""
    return (chosen.layer - 1) * config.num_heads + max(chosen.head, 1) - 1


def _head_at(config: Any, place: int) -> tuple[int, int]:
    """Return layer and head of a place in the film, which goes on from its end."""
    layer, head = divmod(
        place % (config.num_layers * config.num_heads), config.num_heads
    )
    return layer + 1, head + 1


def _show(config: Any, place: int) -> None:
    layer, head = _head_at(config, place)
    parts.set_controls("reading", {"layer": layer, "head": head})


def _draw_large(reading: Any, config: Any, chosen: Chosen, limit: float) -> None:
    from core import charts, reading_story
    from core.charts import tidy
    from core.charts.image_grid import pixel_frame, pixel_map

    name = reading_story.map_name(chosen.layer, chosen.head, config.num_heads)
    matrix = reading_story.of_head(reading.maps, chosen.layer, chosen.head)
    options = {
        "key": "reading_map",
        "alt": reading_story.map_sentence(reading, chosen.layer, chosen.head),
        "title": name,
        "limit": limit,
        "height": _HEIGHT,
    }
    if matrix.numel() <= map_view.MOST_CELLS:
        labels = {"row_labels": reading.labels, "column_labels": reading.labels}
        mask = reading_story.mask_of(config)
        frame = tidy.matrix_frame(matrix, **labels, mask=mask)
        parts.bare_chart(charts.heatmap, frame, **options)
    else:
        dark = parts.is_dark()
        frame = pixel_frame(tidy.to_array(matrix), limit=limit, dark=dark)
        frame = frame.assign(**reading_story.map_axes(config))
        parts.bare_chart(pixel_map, frame, **options)


def _play(reading: Any, config: Any, seconds: float, limit: float) -> None:
    from core.charts.image_grid import png_address

    dark = parts.is_dark()

    def view() -> None:
        place = st.session_state.get(_PLAYS)
        if place is not None:
            st.session_state[_PLAYS] = place + 1
            picture = _picture(reading, config, place, limit, dark=dark)
            st.image(png_address(picture), alt=_ALT)

    st.fragment(view, run_every=seconds)()


def _picture(reading: Any, config: Any, place: int, limit: float, *, dark: bool) -> Any:
    from core import reading_story
    from core.charts.animation import map_picture
    from core.charts.tidy import to_array

    layer, head = _head_at(config, place)
    return map_picture(
        to_array(reading_story.of_head(reading.maps, layer, head)),
        labels=reading.labels,
        title=reading_story.map_name(layer, head, config.num_heads),
        limit=limit,
        dark=dark,
    )


def _offer_film(reading: Any, config: Any, seconds: float, limit: float) -> None:
    dark = parts.is_dark()

    def film() -> bytes:
        from core.charts.animation import gif_bytes

        places = range(config.num_layers * config.num_heads)
        shown = (_picture(reading, config, n, limit, dark=dark) for n in places)
        return gif_bytes(list(shown), seconds=seconds)

    st.download_button(
        "Film as GIF",
        film,
        file_name=f"attention_maps_sequence_{reading.sequence}.gif",
        mime="image/gif",
        key="reading_gif",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )
