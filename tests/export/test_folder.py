"""`dada export`: what it writes, and what it refuses."""

import hashlib
import json
import sys

import pytest

from dada.cli import main
from dada.errors import InputError
from dada.export import export
from dada.export.manifest import manifest_of, weights_hash
from dada.models.default import fast, learned
from dada.models.files import save

from .networks import CONFIGS, network

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("export")
    save(network("four bands"), place / "mine.safetensors")
    assert main(["export", str(place / "mine.safetensors"), "-o", str(place / "graphs"), "--quiet"]) == 0
    return place / "graphs"


def test_the_manifest_names_what_is_in_the_graphs(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {path.name for path in folder.iterdir()} == {*manifest["graphs"], "manifest.json"}
    for file, told in manifest["graphs"].items():
        graph = onnx.load(folder / file).graph
        for values, named in ((graph.input, told["inputs"]), (graph.output, told["outputs"])):
            found = {one.name: [d.dim_param or d.dim_value for d in one.type.tensor_type.shape.dim] for one in values}
            assert found == {name: tensor["shape"] for name, tensor in named.items()}
            kinds = {one.name: onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type) for one in values}
            assert {name: str(kind) for name, kind in kinds.items()} == {n: t["dtype"] for n, t in named.items()}


def test_the_manifest_tells_of_the_network(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["rounds"], manifest["adjust"], manifest["opset"]["ai.onnx"]) == (2, "shift", 18)
    assert manifest["guide"]["takes"] == [1, 3, 4]
    assert manifest["guide"]["missing_fourth_band"] == manifest["guide"]["mean"][3]
    assert manifest["weights_sha256"] == weights_hash(network("four bands"))
    assert any("Eq. 1" in step and "Eq. 3" in step for step in manifest["caller"])


@pytest.mark.parametrize("name", list(CONFIGS))
def test_a_manifest_is_json_for_every_network(name):
    text = json.dumps(manifest_of(network(name), [], {}))
    assert ("start.onnx" in text) == (CONFIGS[name].source == "own")


def test_other_weights_have_another_hash():
    assert weights_hash(learned()) != weights_hash(fast())
    assert len(weights_hash(fast())) == hashlib.sha256().digest_size * 2


def test_a_folder_with_files_stays_as_it_is(folder, capsys):
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert main(["export", "-o", str(folder)]) == 2
    assert "already is such a file or folder" in capsys.readouterr().err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_a_model_without_a_network_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="model dynamic is no network of DADA"):
        export("dynamic", tmp_path / "graphs")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_names_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r'pip install "dada-sr\[export\]"'):
        export("default", tmp_path / "graphs")
    assert not list(tmp_path.iterdir())


def test_the_network_that_was_given_stays_as_it_was(tmp_path):
    given = network("one band").train()
    export(given, tmp_path / "graphs")
    assert given.training
