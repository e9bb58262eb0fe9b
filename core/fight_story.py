"""What a race shows, in sentences: they say what these runs show and no more."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from core.fair_fight import FightStep
from core.fight_config import LOOK_EVERY, NUM_TESTED, TRANSFORMER, FightConfig
from core.fight_results import Standing, rulers, standings, step_times
from core.grid_story import HALF, LEARNED, duration

FLOOR = 1e-16  # of the ruler; a number in single precision hardly tells more
_HARDLY = 1e-8  # a gradient below it is next to nothing beside single precision
_LEAST = 2.0**-126  # the smallest normal number in single precision


def sentences(steps: Sequence[FightStep], against: str = "seconds") -> list[str]:
    """Return what a race shows; nothing before its first look.

    Args:
        steps: Results of a race.
        against: "steps" or "seconds": seconds are told only where they are drawn.
    """
    found = standings(steps)
    if not found:
        return []
    cost = cost_sentence(found, against)
    said = (end_sentence(found), hard_sentence(found), cost)
    return [sentence for sentence in said if sentence]


def end_sentence(found: Sequence[Standing]) -> str:
    """Return who learned, who stays near half, and where the others stand.

    Args:
        found: At least one.
    """
    seeds = max(len(standing.accuracies) for standing in found)
    taken = [count for standing in found for count in standing.steps]
    low, high = min(taken), max(taken)
    when = f"After {high} steps" if low == high else f"So far, {low} to {high} steps"
    said = []
    if learned := [s.name for s in found if s.learned]:
        said.append(f"{100 * LEARNED:.0f} % or more with every seed: {_list(learned)}")
    if near := [s.name for s in found if s.near_half]:
        half = f"{100 * HALF[0]:.0f} to {100 * HALF[1]:.0f} %"
        said.append(f"near a coin flip ({half}): {_list(near)}")
    between = [s for s in found if not (s.learned or s.near_half)]
    said += [f"{s.name} at {_range(s.accuracies)}" for s in between]
    return f"{when}, {_count(seeds, 'seed')}. {_first_up('; '.join(said))}."


def hard_sentence(found: Sequence[Standing]) -> str | None:
    """Return what another start of the forget gate changes, where it does."""
    by_name = {standing.name: standing for standing in found}
    usual = by_name.get("LSTM")
    opened = next((s for s in found if s.name.startswith("LSTM ")), None)
    if usual is None or opened is None or not (usual.near_half and opened.learned):
        return None
    return (
        f"The same LSTM with forget bias {opened.name.split()[1]} stands at "
        f"{_range(opened.accuracies)}: from its default start the task is hard, not "
        "impossible."
    )


def cost_sentence(found: Sequence[Standing], against: str = "seconds") -> str | None:
    """Return what 95 % cost those who came there with every seed, the first first.

    Each cost is told with its own ends over the seeds: the seed of the median steps is
    not the one of the median seconds.

    Args:
        found: How the contenders stand.
        against: "steps", or "seconds", which are told beside the steps.
    """
    learned = [standing for standing in found if standing.learned]
    if not learned:
        return None
    learned.sort(key=lambda standing: median(standing.costs(against)))
    said = (f"{standing.name} {_cost(standing, against)}" for standing in learned)
    several = max(len(standing.accuracies) for standing in learned) > 1
    over = ", median over seeds (least to most)" if several else ""
    return (
        f"To {100 * LEARNED:.0f} %, looked for every {LOOK_EVERY} steps{over}: "
        f"{'; '.join(said)}."
    )


def reveal(found: Sequence[Standing]) -> str:
    """Return who learned and what it cost, for the answer of a prediction."""
    said = (end_sentence(found), cost_sentence(found))
    return " ".join(sentence for sentence in said if sentence)


def ruler_sentence(read: Mapping[str, Sequence[float]]) -> str:
    """Return what the loss reads of the marker, beside what it reads of the last token.

    Args:
        read: From ``rulers``.
    """
    said = (f"{name} {_small(values[0])}" for name, values in read.items())
    ratios = {
        name: values[0] / values[-1] for name, values in read.items() if values[-1] > 0
    }
    if not ratios:
        return f"|∂loss/∂x₀|: {'; '.join(said)}."
    least = min(ratios, key=lambda name: ratios[name])
    share = _small(ratios[least], _LEAST / read[least][-1])
    return (
        f"|∂loss/∂x₀|, where the marker stands: {'; '.join(said)}. In {least} it is "
        f"{share} times that of the last token."
    )


def rulers_told(steps: Sequence[FightStep], moment: str) -> list[str]:
    """Return what the rulers of a race show; nothing before its first look.

    Args:
        steps: Results of a race.
        moment: As for ``rulers``.
    """
    read = rulers(steps, moment)
    if not read:
        return []
    said = [read_sentence(steps, moment), ruler_sentence(read), floor_sentence(read)]
    if moment == "before":
        said.append(yet_sentence(read, standings(steps)))
    return [sentence for sentence in said if sentence]


def read_sentence(steps: Sequence[FightStep], moment: str) -> str:
    """Return after which steps the rulers were read, and over how many seeds.

    Args:
        steps: Results of a race, at least one look.
        moment: As for ``rulers``.
    """
    last: dict[tuple[str, int], int] = {}
    for step in steps:
        if step.ruler is not None:
            last[step.contender, step.seed] = step.step
    low, high = min(last.values()), max(last.values())
    when = f"after {high} steps" if low == high else f"after {low} to {high} steps"
    when = "before training" if moment == "before" else when
    seeds = Counter(name for name, _ in last).values()
    most = _count(max(seeds), "seed")
    over = most if min(seeds) == max(seeds) else f"{min(seeds)} to {most}"
    return f"Read {when}; median over {over}."


def yet_sentence(
    read: Mapping[str, Sequence[float]], found: Sequence[Standing]
) -> str | None:
    """Return who learned although its loss read next to nothing of the marker.

    Args:
        read: The rulers before training.
        found: How the contenders stand.
    """
    late = [s for s in found if s.learned and read[s.name][0] < _HARDLY]
    if not late:
        return None
    said = (
        f"{s.name} begins with {_small(read[s.name][0])} and stands at "
        f"{_range(s.accuracies)}"
        for s in late
    )
    return (
        f"{'; '.join(said)}: a small gradient at the start does not rule learning out."
    )


def floor_sentence(read: Mapping[str, Sequence[float]]) -> str | None:
    """Return whose ruler has numbers below what the axis shows, and how many."""
    below = {name: sum(value < FLOOR for value in v) for name, v in read.items()}
    said = [f"{name} at {_count(n, 'position')}" for name, n in below.items() if n]
    return f"Below {FLOOR:.0e}, not drawn: {'; '.join(said)}." if said else None


def table_rows(
    config: FightConfig, steps: Sequence[FightStep]
) -> list[tuple[str, ...]]:
    """Return a row a contender: width, parameters, share, seconds, accuracy.

    Args:
        config: The race.
        steps: What it brought.
    """
    reference = config.cell().config(0).model.num_parameters
    found = {standing.name: standing for standing in standings(steps)}
    paces = step_times(steps)
    rows: list[tuple[str, ...]] = []
    for contender in config.contenders:
        count = config.num_parameters(contender)
        what = "d_model" if contender.model == TRANSFORMER else "hidden"
        standing = found.get(contender.name)
        times = paces.get(contender.name)
        rows.append(
            (
                contender.name,
                f"{what} {config.hidden_size(contender)}",
                f"{count:,}",
                f"{count / reference:.3f}",
                "–" if not times else _over_seeds([1000 * t for t in times], "ms"),
                "–" if standing is None else _range(standing.accuracies),
            )
        )
    return rows


def parameters_sentence(config: FightConfig) -> str:
    """Return how near the parameters of the contenders are to each other."""
    counts = {c.name: config.num_parameters(c) for c in config.contenders}
    least, most = (f(counts, key=lambda n: counts[n]) for f in (min, max))
    if config.equal_parameters:
        spread = counts[most] / counts[least] - 1
        return (
            f"Each hidden size is the one nearest to the Transformer's parameters: "
            f"{counts[least]:,} to {counts[most]:,}, {100 * spread:.1f} % apart."
        )
    return (
        f"All have width {config.hidden_size(config.contenders[0])}, so parameters "
        f"differ: {least} {counts[least]:,}, {most} {counts[most]:,}."
    )


def budget_sentence(config: FightConfig) -> str:
    """Return what a race costs, before it starts."""
    runs = len(config.contenders) * config.num_seeds
    return (
        f"{_count(runs, 'run')} of {config.steps} steps: about "
        f"{duration(config.seconds)} of one core's time."
    )


def recipe_sentence(config: FightConfig) -> str:
    """Return how all contenders are trained."""
    return (
        f"Every batch is the same for all: {config.batch_size} sequences of "
        f"{config.seq_len} tokens; Adam at {config.learning_rate:g}. "
        f"Tested on {NUM_TESTED} others."
    )


def absent_sentence(config: FightConfig, names: Sequence[str]) -> str | None:
    """Return who of those named did not run in a race.

    Args:
        config: The race.
        names: All that the legend names.
    """
    ran = {contender.name for contender in config.contenders}
    absent = [name for name in names if name not in ran]
    return f"Not in this race: {_list(absent)}." if absent else None


def setting_words(config: FightConfig) -> str:
    """Return what all contenders of a race share, in a few words."""
    sizes = "equal parameters" if config.equal_parameters else "equal width"
    return f"{config.seq_len} tokens, {sizes}, {_count(config.num_seeds, 'seed')}"


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * share:.1f}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _cost(standing: Standing, against: str) -> str:
    steps = _over_seeds(standing.costs("steps"), "steps", digits=0)
    if against == "steps":
        return steps
    return f"{_over_seeds(standing.costs('seconds'), 's')}, in {steps}"


def _over_seeds(values: Sequence[float], unit: str, digits: int = 1) -> str:
    """Return the median over the seeds, and between what ends the seeds lie."""
    low, middle, high = (
        f"{value:.{digits}f}" for value in (min(values), median(values), max(values))
    )
    return f"{middle} {unit}" if low == high else f"{middle} {unit} ({low} to {high})"


def _small(number: float, least: float = _LEAST) -> str:
    """Return a number of at least 0 in few digits; below ``least`` it is not known."""
    if number < least:
        return f"less than {least:.1e}"
    return f"{number:.0e}" if number < 1e-3 else f"{number:.2g}"


def _list(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
