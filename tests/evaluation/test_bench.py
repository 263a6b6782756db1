"""Facts about the bench: results are measured once, an interrupted run goes on, a failure does not lose the others."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import dada
from dada import upsample
from dada.diffusion import down
from dada.errors import InputError
from dada.evaluation import fingerprint
from dada.evaluation.bench import printed_unit, run
from dada.evaluation.cache import Cache
from dada.evaluation.diffusion import Diffusion
from dada.evaluation.fingerprint import code_fingerprint, method_fingerprint
from dada.evaluation.methods import Entry, resolve, resolve_all
from dada.evaluation.protocol import P1, P2
from dada.evaluation.resources import watched
from dada.models.default import WEIGHTS
from dada.models.learning_free import LearningFree
from dada.sample import Sample, make_sample
from tests.evaluation.problems import CALLS, Few, Offset, pair

SMALL = P1.with_crop(32)
SCENES = Few(tuple(pair(name, (64, 64), seed) for seed, name in enumerate(("one", "two"))))


def entry(label="offset", **settings) -> Entry:
    return Entry(label, "offset", Offset(**settings))


@pytest.fixture(autouse=True)
def _forget():
    CALLS.clear()


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache")


PLAIN = Entry("bicubic", "bicubic", Offset(name="bicubic"))


def bench(cache, *entries, factors=(4, 8), dataset=SCENES, protocol=SMALL, **options):
    return run([PLAIN, *entries], dataset, protocol, factors, cache, **options)


def test_a_known_error_comes_out_in_centimetres(cache):
    flat = Few((replace(pair("flat", (64, 64)), target=np.full((64, 64), 2000, np.float32)),))
    report = bench(cache, entry(amount=0.03), dataset=flat)  # 30 mm
    scores = report.scores("offset", 4)
    assert (scores.mse, scores.mae, scores.rmse) == pytest.approx((9, 3, 3), rel=1e-5)
    assert scores.consistency_max == pytest.approx(3, rel=1e-5)
    assert (report.unit, report.count, report.scenes) == ("cm", 4, ["flat"])


def test_data_that_are_not_lengths_keep_their_unit(cache):
    assert [printed_unit(q) for q in ("height m", "grey levels")] == [("m", 1.0), ("grey levels", 1.0)]
    flat = Few(
        (replace(pair("flat", (64, 64)), target=np.full((64, 64), 20, np.float32)),), unit=10, quantity="height m"
    )
    assert bench(cache, entry(amount=0.3), dataset=flat).scores("offset", 4).mae == pytest.approx(3, rel=1e-5)


def test_what_is_measured_is_not_measured_again(cache):
    first = bench(cache, entry())
    count = len(CALLS)
    assert count == 2 * 2 * 8  # methods, factors, crops
    again = bench(cache, entry())
    assert len(CALLS) == count
    assert again.scores("offset", 8) == first.scores("offset", 8)


@pytest.mark.parametrize(
    "change",
    [
        {"entry": {"amount": 0.5}},
        {"dataset": replace(SCENES, unit=900.0)},
        {"dataset": Few((pair("one", (64, 64), 5), SCENES.pairs[1]))},
        {"protocol": P1.with_crop(16)},
        {"factors": (16,)},
    ],
)
def test_whatever_changes_the_result_is_measured_anew(cache, change):
    bench(cache, entry())
    CALLS.clear()
    bench(cache, entry(**change.pop("entry", {})), **change)
    assert CALLS


def test_fresh_takes_nothing_from_before(tmp_path, cache):
    bench(cache, entry())
    count = len(CALLS)
    bench(Cache(tmp_path / "cache", fresh=True), entry())
    assert len(CALLS) == 2 * count


def test_a_damaged_record_is_measured_again(tmp_path, cache):
    bench(cache, entry())
    CALLS.clear()
    files = sorted((tmp_path / "cache" / "offset").glob("*.json"))
    files[0].write_text('{"name": "on')
    files[1].write_text("[]")
    bench(cache, entry())
    assert len(CALLS) == 2


def test_an_interrupted_run_goes_on(tmp_path, cache, monkeypatch):
    whole = bench(Cache(tmp_path / "other"), entry())
    CALLS.clear()
    call = Offset.__call__

    def interrupted(self, sample):
        if len(CALLS) == 13:
            raise KeyboardInterrupt
        return call(self, sample)

    with monkeypatch.context() as patch:
        patch.setattr(Offset, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench(cache, entry())
    report = bench(cache, entry())
    assert len(CALLS) == 2 * 2 * 8  # none twice
    assert report.scores("offset", 8) == whole.scores("offset", 8)


def test_methods_do_not_see_the_truth(cache):
    seen = []

    def curious(sample):
        seen.append((sample.target, sample.target_mask))
        return sample.initial

    bench(cache, Entry("curious", "curious", curious), factors=(4,))
    assert set(seen) == {(None, None)}


def test_one_failure_does_not_lose_the_others(cache):
    report = bench(cache, entry("bad", fails_at="two@0,0"), entry())
    assert report.failures == [f"bad at x{f}: two@0,0: RuntimeError: no idea" for f in (4, 8)]
    assert report.scores("bad", 4) is None
    assert report.runs["offset", 4].scores("pixels") is not None
    assert report.count == 8


def test_warnings_are_told_once_and_kept(cache):
    for _ in range(2):
        report = bench(cache, entry("careful", warning="not sure"))
        assert report.warnings == [f"careful at x{f}: not sure (8 of 8 such)" for f in (4, 8)]


def test_a_result_that_is_not_finite_is_a_failure(cache):
    report = bench(cache, entry("bad", amount=float("nan")), entry())
    assert "not finite" in report.failures[0]
    assert report.scores("offset", 4) is not None


def test_the_busiest_crop_is_drawn_with_all_results_also_from_the_cache(cache):
    drawn = []

    def draw(sample, results):
        drawn.append((sample.names[0], round(sample.factor), {k: v.numpy() for k, v in results.items()}))

    bench(cache, entry(), draw=draw)
    count = len(CALLS)
    assert [(name.partition("@")[0], factor) for name, factor, _ in drawn] == [
        ("one", 4), ("one", 8), ("two", 4), ("two", 8)
    ]  # fmt: skip
    bench(cache, entry(), draw=draw)
    assert len(CALLS) == count
    np.testing.assert_array_equal(drawn[0][2]["offset"], drawn[4][2]["offset"])


@dataclass(frozen=True)
class Together(Offset):
    """Adds the mean of its batch; warns of nothing."""

    together: int = 3

    def __call__(self, sample):
        CALLS.append((sample.names, round(sample.factor)))
        return sample.initial + sample.initial.mean()


def test_a_method_that_asks_for_it_gets_several_crops_at_a_time(cache):
    method = Together()
    report = bench(cache, Entry("batch", "batch", method), factors=(4, 8))
    given = [names for names, factor in CALLS if isinstance(names, tuple) and factor == 8]
    assert [len(names) for names in given] == [3, 3, 2]
    samples = [SMALL.sample(part, 8, SCENES.unit) for pair in (0, 1) for part in SMALL.cut(SCENES[pair])]
    records = report.runs["batch", 8].records
    assert [record.name for record in records] == [sample.names[0] for sample in samples]
    batch = Sample.batch(samples[3:6])
    wanted = SMALL.measure(method(batch), batch)
    assert [record.sums.squared for record in records[3:6]] == pytest.approx([sums.squared for sums in wanted])


def test_a_batch_is_measured_again_only_where_one_of_it_is_another(cache):
    batch = Entry("batch", "batch", Together())
    bench(cache, batch, factors=(8,))
    CALLS.clear()
    assert bench(cache, batch, factors=(8,)).count == 8
    assert not CALLS
    bench(cache, batch, factors=(8,), limit=7)  # three and one of each image
    assert CALLS


def test_whole_images_go_one_by_one(cache):
    dataset = Few((pair("wide", (64, 96), holes=False), pair("high", (96, 64), holes=False)))
    report = bench(cache, Entry("batch", "batch", Together()), dataset=dataset, protocol=P1.with_crop(0))
    assert not report.failures
    assert [names for names, _ in CALLS if isinstance(names, tuple)] == [("wide",), ("wide",), ("high",), ("high",)]


def test_the_authors_solver_of_lgr_gets_a_batch_and_ours_an_image(cache):
    """As in its authors' evaluation, whose stopping rule is over the batch."""
    entries = resolve_all(["lgr-free"])[1:] + resolve_all(["lgr-free"], ["lgr-free.solver=equilibrium"])[1:]
    assert [entry.batch for entry in entries] == [32, 1]
    report = bench(cache, *entries, factors=(8,))
    samples = [SMALL.sample(part, 8, SCENES.unit) for pair in (0, 1) for part in SMALL.cut(SCENES[pair])]
    for entry in entries:
        parts = [Sample.batch(samples)] if entry.batch > 1 else samples
        wanted = [sums.squared for part in parts for sums in SMALL.measure(entry.method(part), part)]
        assert [r.sums.squared for r in report.runs[entry.label, 8].records] == wanted
    alone = [SMALL.measure(entries[0].method(sample), sample)[0].squared for sample in samples]
    assert [r.sums.squared for r in report.runs["lgr-free", 8].records] != alone


def test_p2_averages_the_rmse_of_images(cache):
    dataset = Few(tuple(pair(name, (64, 64), seed, holes=False) for seed, name in enumerate("ab")))
    report = bench(cache, dataset=dataset, protocol=P2)
    each = [record.sums.rmse / 10 for record in report.runs["bicubic", 4].records]
    assert report.scores("bicubic", 4).rmse == pytest.approx(sum(each) / 2)


def test_progress_goes_from_nothing_to_nearly_all(cache):
    seen = []
    bench(cache, entry(), progress=lambda share, text: seen.append((share, text)))
    shares = [share for share, _ in seen]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert 0.8 < shares[-1] < 1
    assert seen[0][1] == "x4 bicubic: one@0,0"


def test_memory_counts_what_a_call_takes_for_a_moment():
    with watched() as usage:
        np.ones(60_000_000 // 8).sum()
    if usage.memory is None:
        pytest.skip("this system does not tell the peak of memory")
    assert 55e6 < usage.memory < 90e6
    with watched() as little:
        pass
    assert little.memory < 5e6


SCRIPT = """
import sys, time
from pathlib import Path
from dataclasses import dataclass
from dada.evaluation.bench import run
from dada.evaluation.cache import Cache
from dada.evaluation.methods import Entry
from tests.evaluation.test_bench import SCENES, SMALL, Slow
run([Entry("bicubic", "bicubic", Slow())], SCENES, SMALL, [4], Cache(Path(sys.argv[1])))
"""


class Slow(Offset):
    def __call__(self, sample):
        time.sleep(0.15)
        return super().__call__(sample)


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "cache")], cwd=root, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    folder = tmp_path / "cache" / "bicubic"
    deadline = time.monotonic() + 60
    while len(list(folder.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = len(list(folder.glob("*.json")))
    assert 3 <= done < 8
    for file in folder.glob("*.json"):
        json.loads(file.read_text())
    report = run([Entry("bicubic", "bicubic", Slow())], SCENES, SMALL, [4], Cache(tmp_path / "cache"))
    assert len(CALLS) == 8 - done
    assert report.count == 8


# ---- who takes part ----------------------------------------------------------------------------------------


def test_bicubic_always_takes_part():
    assert [c.label for c in resolve_all(["gf"])] == ["bicubic", "gf"]
    assert [c.label for c in resolve_all(["gf", "bicubic"])] == ["gf", "bicubic"]


def test_settings_change_a_method_and_its_label():
    found = resolve("gf", ["gf.radius=4", "pixt.iterations=10"])
    assert (found.label, found.name, found.method.radius) == ("gf (radius=4)", "gf", 4)
    assert resolve("gf", ["gf.epsilon=1"]).method.epsilon == 1.0


@pytest.mark.parametrize(
    ("methods", "settings", "message"),
    [
        (["gf"], ["gf.width=4"], "no setting 'width': it has radius"),
        (["gf"], ["gf.radius=wide"], "a whole number"),
        (["gf"], ["gf.radius=0"], "cannot be set so"),
        (["gf"], ["radius=4"], "no method here"),
        (["gf"], ["gf.radius"], "METHOD.SETTING=VALUE"),
        (["gf"], ["pixt.iterations=4"], "no method here"),
        (["gf", "gf"], [], "named twice"),
        (["nonsense"], [], "neither a method"),
    ],
)
def test_mistakes_are_explained(methods, settings, message):
    with pytest.raises(InputError, match=message):
        resolve_all(methods, settings)


def test_a_model_of_upsample_is_a_method(cache):
    found = resolve("none")
    assert found.label == "model none"
    report = bench(cache, found, factors=(4,))
    assert report.scores("model none", 4).mse < report.scores("bicubic", 4).mse
    assert report.scores("model none", 4).consistency_max < 0.05


def test_a_model_takes_values_that_are_not_positive(cache):
    shifted = Few(tuple(replace(p, target=p.target - 2000) for p in SCENES.pairs))
    report = bench(cache, resolve("none"), factors=(4,), dataset=shifted)
    assert not report.failures


@pytest.mark.parametrize(
    ("model", "low", "high", "adjust"),
    [
        ("none", 0.0, 30.0, "shift"),
        ("learned", 0.02, 1.0, "shift"),  # goes below zero here, where its bounds end
        ("none", -1.0, 1.0, "shift"),
        ("none", 1, 2, "ratio"),
    ],
)
def test_the_bench_adjusts_and_keeps_above_zero_as_upsample_does(model, low, high, adjust):
    truth = torch.full((1, 1, 64, 96), high)
    truth[..., 9:40, 7:60] = low
    misleading = torch.rand(1, 3, 64, 96, generator=torch.manual_seed(0))
    sample = make_sample(misleading, truth, torch.ones_like(truth, dtype=torch.bool), 8, interpolation="torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = upsample(sample.source[0, 0], misleading[0], model=model, precision="float32")
    assert alone.report.adjust == adjust
    result = resolve(model).method(sample)
    torch.testing.assert_close(alone.values, result[0, 0], rtol=0, atol=1e-6 * max(high, high - low))
    torch.testing.assert_close(down(result, (8, 12)), sample.source, rtol=0, atol=1e-4 * high)


def test_weights_in_a_file_run_as_the_same_model_by_its_name(tmp_path):
    """As in `dada.upsample`: from the same start, kept above zero; a name of the method asks for the network alone."""
    truth = torch.full((1, 1, 64, 96), 30.0)
    truth[..., 9:40, 7:60] = 0.0
    guide = torch.rand(1, 3, 64, 96, generator=torch.manual_seed(0))
    sample = make_sample(guide, truth, torch.ones_like(truth, dtype=torch.bool), 8, interpolation="torch")
    by_name, by_file = (resolve(text).method(sample) for text in ("learned", str(WEIGHTS)))
    torch.testing.assert_close(by_file, by_name)
    assert by_file.min() >= 0
    with torch.no_grad():
        assert resolve(f"dada:{WEIGHTS}").method(sample).min() < 0


def test_a_sample_without_a_valid_cell_is_named():
    guide, truth = torch.rand(1, 3, 16, 16), torch.ones(1, 1, 16, 16)
    sample = make_sample(guide, truth, torch.zeros_like(truth, dtype=torch.bool), 4, names=("dark",))
    with pytest.raises(InputError, match="dark: there is no valid source cell"):
        resolve("none").method(sample)


# ---- fingerprints ------------------------------------------------------------------------------------------


def test_a_fingerprint_follows_settings_and_weights():
    assert method_fingerprint(Offset(1.0)) == method_fingerprint(Offset(1.0))
    assert method_fingerprint(Offset(1.0)) != method_fingerprint(Offset(2.0))
    assert method_fingerprint(Diffusion(LearningFree())) != method_fingerprint(Diffusion(LearningFree(kappa=0.02)))
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU())
    before = method_fingerprint(network)
    assert method_fingerprint(network.eval()) == before
    with torch.no_grad():
        network[0].weight[0, 0, 0, 0] += 1
    assert method_fingerprint(network) != before
    wider = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU())
    wider.load_state_dict(network.state_dict())
    assert method_fingerprint(wider) != method_fingerprint(network)


def test_a_fingerprint_tells_functions_apart_by_what_they_enclose():
    functions = [lambda sample, amount=amount: sample.initial + amount for amount in (1, 2)]

    def plus(amount):
        return lambda sample: sample.initial + amount

    functions += [plus(1), plus(2)]
    assert len({method_fingerprint(function) for function in functions}) == 4


def test_a_fingerprint_tells_values_of_different_types_apart():
    values = [1, 1.0, "1", True, [1], (1,), {1: 1}, None, np.ones(1), np.ones((1, 1)), torch.ones(1)]
    assert len({fingerprint.fingerprint(value) for value in values}) == len(values)


def test_code_is_followed_through_imports_and_comments_do_not_count(monkeypatch):
    sources = {"dada.a": "import dada.b", "dada.b": "from .c import x", "dada.c": "x = 1"}
    monkeypatch.setattr(fingerprint, "_parse", lambda n: fingerprint.ast.parse(sources[n]) if n in sources else None)
    monkeypatch.setattr(fingerprint, "_is_package", lambda n: False)

    def now() -> str:
        code_fingerprint.cache_clear()
        return code_fingerprint("dada.a")

    before = now()
    sources["dada.c"] = "x = 1  # one"
    assert now() == before
    sources["dada.c"] = "x = 2"
    assert now() != before
    code_fingerprint.cache_clear()


SOLVED = ["default", "none", "dynamic", f"dada:{WEIGHTS}", str(WEIGHTS)]


FOLDER = Path(dada.diffusion.__file__).parent


@pytest.mark.parametrize("name", SOLVED)
def test_every_file_of_the_solver_is_in_the_fingerprint_of_what_it_solves(name):
    files = {path.relative_to(FOLDER.parents[1]).with_suffix("") for path in FOLDER.rglob("*.py")}
    modules = {".".join(path.parts).removesuffix(".__init__") for path in files}
    followed = {name for name, _ in fingerprint.code_of(type(resolve(name).method).__module__)}
    assert modules <= followed
    assert "dada.compiling" in followed


def test_a_changed_kernel_changes_the_fingerprint(monkeypatch):
    kernels = [name for name, _ in fingerprint.code_of(Diffusion.__module__) if "@kernel" in source_of(name)]
    kernels = [name for name in kernels if name.startswith("dada.diffusion.")]
    assert kernels
    method, plain = Diffusion(LearningFree()), fingerprint._parse

    def now() -> str:
        code_fingerprint.cache_clear()
        return method_fingerprint(method)

    before = now()
    with monkeypatch.context() as patch:
        changed = f"{source_of(kernels[0])}\nCHANGED = 1\n"
        patch.setattr(fingerprint, "_parse", lambda n: fingerprint.ast.parse(changed) if n == kernels[0] else plain(n))
        assert now() != before
    assert now() == before


def test_methods_that_do_not_use_each_other_do_not_share_code():
    followed = {name for name, _ in fingerprint.code_of(Diffusion.__module__)}
    assert not any(name.startswith("dada.baselines.") for name in followed)


def source_of(module: str) -> str:
    return Path(find_spec(module).origin).read_text()
