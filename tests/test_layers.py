"""The house: who may import whom, and that core stands without Streamlit."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = [
    {
        "core.checks",
        "core.device",
        "core.initial",
        "core.dropout",
        "core.tokens",
        "core.parity",
        "core.measuring",
        "core.growth",
        "core.threads",
        "core.weights_file",
        "core.templates",
        "core.vocabulary",
        "core.text_rules",
        "core.text_tasks",
    },
    {
        "core.attention",
        "core.masks",
        "core.positional",
        "core.torch_masks",
        "core.source_memory",
    },
    {"core.blocks", "core.scaling", "core.precision", "core.probes"},
    {"core.captions"},
    {"core.heads", "core.head_parity", "core.mistakes"},
    {"core.recurrent"},
    {"core.path_length"},
    {"core.chains"},
    {"core.models", "core.masking", "core.positional_story", "core.lookup"},
    {"core.recurrent_config"},
    {"core.encoder_decoder", "core.recurrent_seq2seq", "core.torch_transformer"},
    {"core.decoding", "core.seq2seq"},
    {"core.decoding_walk"},
    {"core.translation_story"},
    {"core.decoding_story"},
    {
        "core.train_config",
        "core.tasks",
        "core.stepping",
        "core.training",
        "core.seq2seq_config",
        "core.seq2seq_training",
        "core.attempt",
        "core.turns",
        "core.run",
    },
    {"core.layer_norm", "core.block_walk", "core.built_in"},
    {"core.scheduler", "core.shipped", "core.marker_story", "core.grid_cell"},
    {"core.grid_presets", "core.grid_table"},
    {"core.grid_runner", "core.order_grid", "core.grid_story"},
    {"core.experiments", "core.grid_questions"},
    {"core.depth"},
    {"core.timing", "core.forget_bias", "core.layer_memory", "core.trained"},
    {"core.fight_config"},
    {"core.fair_fight"},
    {"core.fight_results"},
    {"core.fight_story", "core.fight_questions"},
    {"core.reading", "core.influence", "core.ablation"},
    {"core.bottleneck", "core.bottleneck_reading"},
    {"core.charts", "core.heads_story"},
    {"core.bottleneck_story"},
    {"core.bottleneck_answers"},
    {"core.shipped_seq2seq", "core.stack_walk"},
    {"core.translation_run"},
    {"core.block_story", "core.reading_story", "core.influence_story"},
    {"core.arithmetic", "core.lookup_panels", "core.lookup_story"},
    {"core.recurrence_story"},
    {"core.template_run"},
    {"core.template_story"},
    {"core.gallery"},
]
FILES = sorted((ROOT / "core").rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return "core.charts" if name.startswith("core.charts") else name


def layer_of(module: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if module in layer)


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


@pytest.mark.parametrize(
    "path", [p for p in FILES if module_of(p) != "core"], ids=module_of
)
def test_a_module_of_core_imports_only_lower_layers_or_its_own(path):
    known = {name for layer in LAYERS for name in layer}
    own = layer_of(module_of(path))
    for name in imports_of(path):
        module = "core.charts" if name.startswith("core.charts") else name
        if module in known:
            assert layer_of(module) <= own, f"{module_of(path)} imports {module}"
        assert name.split(".")[0] not in {"streamlit", "pages"}


def run_fresh(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_importing_all_of_core_leaves_streamlit_out():
    names = sorted({module_of(path) for path in FILES})
    code = f"import sys, importlib\nfor n in {names}: importlib.import_module(n)\n"
    assert run_fresh(code + "print('streamlit' in sys.modules)") == "False"


def test_the_frame_and_the_home_page_import_no_torch():
    code = (
        "import sys\n"
        "from pages._ui import controls, course, frame, parts\n"
        "print([m for m in ('torch', 'altair', 'core.charts') if m in sys.modules])"
    )
    assert run_fresh(code) == "[]"
