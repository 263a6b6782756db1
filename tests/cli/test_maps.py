"""Facts about `dada upsample` with rasters: their place, what their numbers mean, and what a type can hold."""

import json
import re

import numpy as np
import pytest

import dada as package
from dada.io import Georeference, Meaning, read_image, write_image
from dada.upsampling.result import consistency

rasterio = pytest.importorskip("rasterio")

UTM, MERCATOR = (rasterio.CRS.from_epsg(number).to_wkt() for number in (32632, 3857))
FINE = Georeference(UTM, (1.0, 0.0, 500_000.0, 0.0, -1.0, 5_200_000.0))
COARSE = Georeference(UTM, (8.0, 0.0, 500_000.0, 0.0, -8.0, 5_200_000.0))
KELVIN = Meaning(0.00341802, 149.0, "K", "surface temperature")


def moved(place: Georeference, east: float = 0.0, north: float = 0.0, crs: str = UTM) -> Georeference:
    a, b, c, d, e, f = place.transform
    return Georeference(crs, (a, b, c + east, d, e, f + north))


def misfit(values: np.ndarray, source: np.ndarray) -> float:
    largest, _ = consistency(values.astype(np.float64), source.astype(np.float64), np.ones(source.shape, bool))
    return largest


@pytest.fixture
def ortho(tmp_path, scene):
    write_image(tmp_path / "ortho.tif", scene.guide, georeference=FINE)
    return tmp_path / "ortho.tif"


# ---- where it lies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (moved(COARSE, east=100_000), "apart and show no common area"),
        (moved(COARSE, crs=MERCATOR), "their coordinate systems differ"),
        (moved(COARSE, east=0.5), "their grids do not fit"),
        (Georeference(UTM, (8.0, 0.0, 500_000.0, 0.0, 8.0, 5_200_000.0)), "apart and show no common area"),
    ],
)
def test_what_cannot_be_laid_on_its_guide_is_refused_and_nothing_written(dada, tmp_path, metres, ortho, place, said):
    write_image(tmp_path / "dsm.tif", metres, georeference=place)
    ran = dada("upsample", tmp_path / "dsm.tif", ortho)
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(f"error: .*dsm.tif and .*ortho.tif: [^\n]*{said}[^\n]*\n", ran.err), ran.err
    assert not (tmp_path / "dsm_upsampled.tif").exists()


def test_a_larger_source_is_cut_to_the_guide(dada, tmp_path, metres, ortho):
    around = np.pad(metres, ((3, 2), (4, 1)), constant_values=9.0)
    write_image(tmp_path / "dsm.tif", around, georeference=moved(COARSE, east=-32, north=24))
    ran = dada("upsample", tmp_path / "dsm.tif", ortho)
    assert ran.code == 0, ran.err
    assert "warning: source and guide were cut to the area that both cover: 16 x 12 of 21 x 17 source cells" in ran.err
    result = read_image(tmp_path / "dsm_upsampled.tif")
    assert result.georeference.transform == FINE.transform
    assert misfit(result.values, metres) < 1e-5


def test_a_south_up_source_is_turned_to_its_guide(dada, tmp_path, metres, ortho):
    south_up = Georeference(UTM, (8.0, 0.0, 500_000.0, 0.0, 8.0, 5_200_000.0 - 96))
    write_image(tmp_path / "dsm.tif", metres[::-1], georeference=south_up)
    confidence = np.ones(metres.shape, np.float32)
    confidence[-1, 0] = 0  # of the first row on the ground
    write_image(tmp_path / "c.tif", confidence, georeference=south_up)
    ran = dada("upsample", tmp_path / "dsm.tif", ortho, "--confidence", tmp_path / "c.tif")
    assert ran.code == 0, ran.err
    first = (tmp_path / "dsm_upsampled.tif").read_bytes()
    write_image(tmp_path / "c.tif", confidence[::-1], georeference=COARSE)  # the same ground, turned
    assert dada("upsample", tmp_path / "dsm.tif", ortho, "--confidence", tmp_path / "c.tif").code == 0
    assert (tmp_path / "dsm_upsampled.tif").read_bytes() == first
    result = read_image(tmp_path / "dsm_upsampled.tif").values
    assert np.isnan(result[:8, :8]).all()
    assert np.isnan(result).sum() == 64
    assert misfit(np.where(np.isnan(result), metres[0, 0], result), metres) < 1e-5


def test_a_larger_guide_gives_a_result_of_the_sources_area(dada, tmp_path, metres, ortho):
    inner = moved(COARSE, east=16, north=-8)
    write_image(tmp_path / "dsm.tif", metres[1:7, 2:9], georeference=inner)
    assert dada("upsample", tmp_path / "dsm.tif", ortho).code == 0
    result = read_image(tmp_path / "dsm_upsampled.tif")
    assert result.values.shape == (48, 56)
    assert result.georeference.transform == moved(FINE, east=16, north=-8).transform
    assert misfit(result.values, metres[1:7, 2:9]) < 1e-5


def test_a_confidence_of_another_place_is_refused(dada, tmp_path, metres, ortho):
    write_image(tmp_path / "dsm.tif", metres, georeference=COARSE)
    write_image(tmp_path / "c.tif", np.ones_like(metres), georeference=moved(COARSE, east=8))
    ran = dada("upsample", tmp_path / "dsm.tif", ortho, "--confidence", tmp_path / "c.tif")
    assert (ran.code, "lies elsewhere" in ran.err) == (2, True)


# ---- what its numbers mean -------------------------------------------------------------------------------------


@pytest.fixture
def thermal(tmp_path, metres):
    """uint16 with scale and offset, as Landsat's surface temperature; nodata 0."""
    kelvin = 280 + 10 * metres
    stored = np.rint((kelvin - KELVIN.offset) / KELVIN.scale).astype(np.uint16)
    stored[2, 3] = 0
    write_image(tmp_path / "st.tif", stored, nodata=0, georeference=COARSE, meaning=KELVIN)
    return tmp_path / "st.tif"


def test_scale_offset_unit_and_description_are_applied_and_kept(dada, tmp_path, thermal, ortho):
    ran = dada("upsample", thermal, ortho, "--report", tmp_path / "r.json")
    assert (ran.code, ran.err) == (0, "")
    assert "uint16 K (scale 0.00341802, offset 149)" in ran.out
    assert "metres" not in ran.out
    assert re.search(r"differs from the source by at most 0\.00\d+ K", ran.out)
    with rasterio.open(tmp_path / "st_upsampled.tif") as file:
        assert (file.dtypes[0], file.nodata) == ("uint16", 0)
        assert (file.scales, file.offsets) == ((KELVIN.scale,), (KELVIN.offset,))
        assert (file.units, file.descriptions) == (("K",), ("surface temperature",))
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["source_unit"] == "K"
    assert report["invalid_cells"] == 1
    assert report["stored"]["consistency_max"] < KELVIN.scale


def test_a_format_without_scale_gets_the_values_themselves(dada, tmp_path, thermal, ortho, metres):
    assert dada("upsample", thermal, ortho, "-o", tmp_path / "a.npy").code == 0
    values = np.load(tmp_path / "a.npy")
    assert values.dtype == np.float32
    assert np.isnan(values).sum() == 64
    assert np.nanmin(values) > 270
    ran = dada("upsample", thermal, ortho, "-o", tmp_path / "a.png")
    assert (ran.code, "uint16 of unit K with a scale" in ran.err) == (2, True)


def test_a_scale_without_a_unit_has_none(dada, tmp_path, metres, ortho):
    write_image(tmp_path / "a.tif", (metres * 100).astype(np.uint16), georeference=COARSE, meaning=Meaning(0.1, 2.0))
    ran = dada("upsample", tmp_path / "a.tif", ortho)
    assert "uint16 (scale 0.1, offset 2)" in ran.out
    assert "metres" not in ran.out


@pytest.mark.parametrize(("spelled", "words"), [("metre", "float32 metres"), ("degC", "float32 C"), ("W/m2", "W/m2")])
def test_units_that_the_file_names_are_used_and_kept(dada, tmp_path, metres, ortho, spelled, words):
    write_image(tmp_path / "a.tif", metres.astype(np.float32), georeference=COARSE, meaning=Meaning(unit=spelled))
    ran = dada("upsample", tmp_path / "a.tif", ortho)
    assert words in ran.out.splitlines()[0]
    assert "taken as" not in ran.out
    assert read_image(tmp_path / "a_upsampled.tif").meaning.unit == spelled


def test_a_unit_that_nobody_stated_is_said_to_be_assumed(dada, tmp_path, pair, metres, ortho):
    # depth of TUM RGB-D, 5000 a metre, looks five times as far as it is
    write_image(pair[0], np.rint(metres * 5000).astype(np.uint16))
    first = dada("upsample", *pair).out.splitlines()[0]
    assert re.search(r"uint16 millimetres; taken as millimetres, 4\.76 to 24\.3 m \(--unit", first)
    assert "taken as" not in dada("upsample", *pair, "--unit", "tum").out
    write_image(tmp_path / "a.tif", (280 + metres).astype(np.float32), georeference=COARSE)
    assert "float32 metres; taken as metres, 281 to 285 m (--unit" in dada("upsample", tmp_path / "a.tif", ortho).out
    assert "float32 K\n" in dada("upsample", tmp_path / "a.tif", ortho, "--unit", "K").out
    assert read_image(tmp_path / "a_upsampled.tif").meaning.unit == "K"


# ---- what a type can hold --------------------------------------------------------------------------------------


def test_a_float_raster_becomes_millimetres_in_png(dada, tmp_path, metres, ortho):
    write_image(tmp_path / "dsm.tif", metres.astype(np.float32), georeference=COARSE)
    ran = dada("upsample", tmp_path / "dsm.tif", ortho, "-o", tmp_path / "fine.png")
    assert "uint16 millimetres" in ran.out
    assert misfit(read_image(tmp_path / "fine.png").values, metres * 1000) <= 0.5


def never(*arguments, **options):
    raise AssertionError("this was computed")


@pytest.mark.parametrize("heights", [300.0, -5.0])
def test_what_would_not_fit_is_refused_before_it_is_computed(dada, tmp_path, metres, ortho, monkeypatch, heights):
    monkeypatch.setattr("dada.upsampling.pipeline.solve", never)
    write_image(tmp_path / "dsm.tif", (metres + heights).astype(np.float32), georeference=COARSE)
    ran = dada("upsample", tmp_path / "dsm.tif", ortho, "-o", tmp_path / "fine.png")
    assert ran.code == 2
    assert re.search(r"the source in millimetres ranges from .* does not fit uint16 .*-o out.tiff", ran.err), ran.err


def test_8_bits_near_their_end_stay_within_and_are_counted(dada, tmp_path, pair, metres):
    levels = np.rint(255 * (metres - metres.min()) / np.ptp(metres)).astype(np.uint8)
    levels[levels < 40] = 40
    levels[3:9, 4:9] = 255
    write_image(pair[0], levels)
    ran = dada("upsample", *pair, "--adjust", "shift")
    assert ran.code == 0, ran.err
    found = re.search(r"(\d+) pixels would have left the range of uint8 and were kept within it", ran.out)
    assert int(found[1]) > 0
    values = read_image(tmp_path / "depth_upsampled.png").values
    assert values.dtype == np.uint8
    assert misfit(values, levels) <= 0.5


def test_a_marker_that_no_file_declares_is_named(dada, tmp_path, metres, ortho):
    heights = np.rint(metres * 100).astype(np.int16)
    heights[4, 4] = -32768
    write_image(tmp_path / "dsm.tif", heights, georeference=COARSE)
    ran = dada("upsample", tmp_path / "dsm.tif", ortho)
    assert "float32" not in ran.err
    assert "1 source cells are -32768, which often means no measurement" in ran.err
    assert "--invalid" in ran.err


# ---- zero in whole numbers -------------------------------------------------------------------------------------


def test_command_and_function_have_one_rule_for_zero(dada, pair, millimetres, scene):
    holed = millimetres.copy()
    holed[4:6, 5] = 0
    write_image(pair[0], holed)
    assert "2 of 192 source cells are invalid" in dada("upsample", *pair).out
    result = package.upsample(holed, scene.guide)
    assert (result.report.invalid_cells, int(np.isnan(result.values).sum())) == (2, 128)
    assert "invalid" not in dada("upsample", *pair, "--invalid", "nan").out
    assert package.upsample(holed, scene.guide, invalid=None).report.invalid_cells == 0
    assert package.upsample(holed.astype(np.float32), scene.guide).report.invalid_cells == 0
    signed = holed.astype(np.int16) - 2000
    signed[4:6, 5] = 0
    with pytest.warns(package.upsampling.UpsampleWarning, match="2 source cells are 0 and taken as invalid"):
        package.upsample(signed, scene.guide)
    write_image(pair[0].with_suffix(".tiff"), signed)
    assert "--invalid nan" in dada("upsample", pair[0].with_suffix(".tiff"), pair[1]).err


# ---- what is said of uncertain cells ---------------------------------------------------------------------------


def test_exact_and_uncertain_cells_are_told_apart(dada, pair, tmp_path, metres):
    write_image(tmp_path / "depth.npy", metres.astype(np.float32))
    rough = metres.astype(np.float32)
    rough[6, 6] += 0.5
    np.save(tmp_path / "depth.npy", rough)
    confidence = np.ones(metres.shape)
    confidence[6, 6] = 0.3
    np.save(tmp_path / "c.npy", confidence)
    ran = dada("upsample", tmp_path / "depth.npy", pair[1], "--confidence", tmp_path / "c.npy")
    said = re.search(
        r"exact cells differ from the source by at most (\S+) m .*, the 1 uncertain ones by up to (\S+) m", ran.out
    )
    assert float(said[1]) < 1e-6
    assert float(said[2]) > 0.05
    np.save(tmp_path / "c.npy", np.full(metres.shape, 0.3))
    ran = dada("upsample", tmp_path / "depth.npy", pair[1], "--confidence", tmp_path / "c.npy")
    assert "its 192 cells, all uncertain, differ from the source by up to" in ran.out


def test_a_source_of_the_guides_size_is_smoothed_where_it_is_uncertain(scene):
    noisy = scene.depth + np.random.default_rng(0).normal(0, 0.05, scene.depth.shape).astype(np.float32)
    with pytest.warns(package.upsampling.UpsampleWarning, match="12288 uncertain pixels are smoothed along the guide"):
        result = package.upsample(noisy, scene.guide, noise=0.05)
    assert "returned" not in " ".join(result.report.warnings)
    before, after = (float(np.abs(one - scene.depth).mean()) for one in (noisy, result.values))
    assert after < 0.75 * before
    exact = package.upsample(noisy, scene.guide)
    np.testing.assert_allclose(exact.values, noisy, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "advice"), [((40, 60, 3), "more pixels than the source"), ((40, 60), "Swap the two")]
)
def test_a_guide_with_fewer_pixels_is_swapped_only_if_it_can_be_a_source(shape, advice):
    with pytest.raises(package.InputError, match=advice):
        package.upsample(np.ones((80, 120), np.float32), np.zeros(shape, np.uint8))


def test_levels_of_confidence_mean_the_same_to_command_and_function(dada, pair, millimetres, scene, tmp_path):
    levels = np.full(millimetres.shape, 2, np.uint8)
    levels[3, 3], levels[6, 6] = 0, 1
    write_image(tmp_path / "c.png", levels)
    assert dada("upsample", *pair, "--confidence", tmp_path / "c.png", "--dtype", "float32", "-o", tmp_path / "a.tiff",
                "--output-unit", "mm").code == 0  # fmt: skip
    with pytest.warns(package.upsampling.UpsampleWarning, match="levels 0 to 2, taken as 0 to 1"):
        result = package.upsample(millimetres, scene.guide, confidence=levels)
    np.testing.assert_allclose(result.values, read_image(tmp_path / "a.tiff").values, rtol=1e-6)
    stated = package.upsample(millimetres, scene.guide, confidence=levels / 2)
    np.testing.assert_array_equal(result.values, stated.values)
    assert (result.report.uncertain_cells, result.report.invalid_cells) == (1, 1)


def test_noise_is_stated_as_a_deviation(dada, tmp_path, pair, scene, metres):
    np.save(tmp_path / "d.npy", metres.astype(np.float32))
    ran = dada("upsample", tmp_path / "d.npy", pair[1], "--noise", "100mm", "-o", tmp_path / "o.npy")
    assert ran.code == 0
    assert "its 192 cells, all uncertain," in ran.out
    stated = package.upsample(metres.astype(np.float32), scene.guide, noise=0.1)
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), stated.values, atol=1e-5)
    ran = dada("upsample", tmp_path / "d.npy", pair[1], "--noise", "2K")
    assert (ran.code, "cannot be converted" in ran.err) == (2, True)
