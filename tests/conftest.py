"""All tests run in float64, with strict types, and with annotations checked.

Not those of `spatial`, whose components are made by the hundred thousand: that takes a
tenth of the time of the whole. JAXDENOC_TYPES=all checks them, too.
"""

import gc
import os
import pkgutil
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Less than half the time to compile, which is most of the time of this suite, and the
# same numbers to rounding. `jaxdenoc demo`, which CI runs too, checks under default
# flags.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1",
)

from jaxtyping import install_import_hook

PACKAGE = Path(__file__).parents[1] / "jaxdenoc"
LEFT_OUT = () if os.environ.get("JAXDENOC_TYPES") == "all" else ("spatial",)
install_import_hook(
    [
        f"jaxdenoc.{module.name}"
        for module in pkgutil.iter_modules([str(PACKAGE)])
        if module.name not in LEFT_OUT
    ],
    "beartype.beartype",
)

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from .support.by_numpy import by_numpy  # noqa: E402

gc.set_threshold(200_000, 20, 100)  # tracing makes objects by the million
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

settings.register_profile(
    "jaxdenoc",
    deadline=None,  # the first example of a shape compiles
    derandomize=True,  # a failure is found again by everyone
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("jaxdenoc")


def pytest_collection_modifyitems(items):
    """The slow ones first, so that no worker starts one at the very end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="module", autouse=True)
def forget():
    """Compiled programs go when they have become many: they take gigabytes."""
    yield
    pages = Path("/proc/self/statm")
    if not pages.exists() or int(pages.read_text().split()[1]) * 4096 > 5e9:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="module")
def link_by_link():
    """Trees in one loop a sweep, which compiles several times faster than branches.

    `recursion/test_sweep.py` shows that both walks are the same; the other tests go
    branch by branch.
    """
    jax.clear_caches()  # of what was made the other way
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxdenoc.recursion._branches.MOST_GROUPS", 0)
        yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def interpreted():
    """Programs run by NumPy, not compiled: for formulas on a robot or two.

    `test_by_numpy.py` shows that every public function is the same when compiled.
    """
    with by_numpy():
        yield


@pytest.fixture
def key():
    return jax.random.key(0)


def pytest_terminal_summary(terminalreporter):
    """The worst residual of each identity that was checked on random robots."""
    worst: dict[str, dict[str, float]] = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "residuals":
                dtype, residuals = value
                for identity, found in residuals.items():
                    row = worst.setdefault(identity, {})
                    row[dtype] = max(row.get(dtype, 0.0), found)
    if not worst:
        return
    types = sorted({dtype for row in worst.values() for dtype in row}, reverse=True)
    terminalreporter.section("worst residuals on random robots")
    terminalreporter.write_line("".join(f"{t:>10}" for t in types) + "  identity")
    for identity, row in worst.items():
        cells = "".join(f"{row.get(t, float('nan')):>10.1e}" for t in types)
        terminalreporter.write_line(f"{cells}  {identity}")
