import subprocess
import sys

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from dada import pictures
from dada.errors import InputError
from dada.pictures.values import DISPLAY, NEUTRAL, guide_painter, pick
from dada.scene import render


def drawn(figure: Figure, dpi: float = 60) -> np.ndarray:
    """Pixels of a figure, [H, W, 3]."""
    figure.set_dpi(dpi)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def has_colour(image: np.ndarray, colour: tuple[int, int, int]) -> bool:
    return bool((image == colour).all(-1).any())


def texts(figure: Figure) -> list[str]:
    found = [text.get_text() for text in figure.texts]
    return found + [text.get_text() for axes in figure.axes for text in axes.texts]


def bar_limits(figure: Figure) -> tuple[float, float]:
    return figure.axes[-1].get_ylim()


def panels(figure: Figure) -> list:
    return [axes for axes in figure.axes if axes.images]


def four(height: int, width: int, factor: int = 8):
    scene = render(height, width)
    source = cv2.resize(scene.depth, (width // factor, height // factor), interpolation=cv2.INTER_AREA)
    bicubic = cv2.resize(source, (width, height), interpolation=cv2.INTER_CUBIC)
    return scene.guide, source, bicubic, scene.depth


class TestPreview:
    def test_invalid_pixels_are_neutral_and_named(self):
        values = np.linspace(0, 1, 600).reshape(20, 30)
        valid = np.ones((20, 30), bool)
        valid[5:10, 5:11] = False
        figure = pictures.preview(values, valid)
        assert has_colour(drawn(figure), NEUTRAL)
        assert "no value (5.0 %)" in texts(figure)

    def test_a_whole_map_has_neither_the_neutral_colour_nor_a_legend(self):
        figure = pictures.preview(np.linspace(0, 1, 600).reshape(20, 30))
        assert not has_colour(panels(figure)[0].images[0].get_array(), NEUTRAL)
        assert not any("no value" in text for text in texts(figure))

    def test_nan_counts_as_invalid(self):
        values = np.ones((6, 6))
        values[2, 2] = np.nan
        assert has_colour(drawn(pictures.preview(values)), NEUTRAL)

    def test_an_outlier_does_not_set_the_range(self):
        values = np.random.default_rng(0).uniform(1, 2, (50, 50))
        values[3, 3] = 1e6
        low, high = bar_limits(pictures.preview(values))
        assert 1 <= low < high <= 2

    def test_a_given_range_is_kept(self):
        assert bar_limits(pictures.preview(np.ones((4, 4)), range=(0.5, 7.0))) == (0.5, 7.0)

    def test_unit_and_title_are_written(self):
        assert {"mm", "a map"} <= set(texts(pictures.preview(np.eye(5), unit="mm", title="a map")))

    def test_the_colour_bar_is_as_high_as_the_image(self):
        figure = pictures.preview(np.random.default_rng(0).random((40, 60)), range=(0, 1), unit="m", title="t")
        figure.canvas.draw()
        image, bar = (axes.get_position() for axes in figure.axes)
        assert image.y0 == pytest.approx(bar.y0, abs=0.01)
        assert image.height == pytest.approx(bar.height, abs=0.01)

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float16, np.float32, np.float64, bool])
    def test_any_real_type_is_shown(self, dtype):
        drawn(pictures.preview(np.arange(12).reshape(3, 4).astype(dtype)))

    @pytest.mark.parametrize(
        "values",
        [
            np.full((9, 7), 3.5),
            np.zeros((9, 7)),
            np.full((9, 7), np.nan),
            np.full((9, 7), -np.inf),
            np.ones((1, 1)),
            np.arange(500.0).reshape(1, 500),
            np.arange(500.0).reshape(500, 1),
            np.full((9, 7), 1e12) + np.arange(7),
            np.arange(63.0).reshape(9, 7) * 1e-9,
        ],
        ids=["constant", "zero", "nan", "inf", "single", "row", "column", "large", "small"],
    )
    def test_degenerate_maps_are_drawn(self, values):
        drawn(pictures.preview(values, unit="m", title="degenerate"))

    def test_a_map_without_any_value_has_no_numbers_on_its_colour_bar(self):
        figure = pictures.preview(np.full((9, 7), np.nan))
        assert len(figure.axes[-1].get_yticks()) == 0
        assert "no value (100.0 %)" in texts(figure)

    def test_a_huge_map_is_thinned_out_for_display(self):
        figure = pictures.preview(np.zeros((40, 9000), np.float32) + np.arange(9000, dtype=np.float32))
        assert max(figure.axes[0].images[0].get_array().shape) <= DISPLAY

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"values": np.ones(5)}, "expected height x width"),
            ({"values": np.ones((0, 5))}, "expected height x width"),
            ({"values": np.ones((2, 2), complex)}, "expected real numbers"),
            ({"values": np.ones((2, 2)), "valid": np.ones((2, 3))}, "valid mask"),
            ({"values": np.ones((2, 2)), "range": (2.0, 2.0)}, "is empty"),
            ({"values": np.ones((2, 2)), "colormap": "plaid"}, "unknown colour map"),
        ],
    )
    def test_wrong_input_is_explained(self, arguments, message):
        with pytest.raises(InputError, match=message):
            pictures.preview(**arguments)


class TestComparison:
    @pytest.mark.parametrize("size", [(96, 128), (40, 200), (200, 40), (8, 8)])
    def test_each_input_has_a_panel_and_an_enlargement(self, size):
        guide, source, bicubic, depth = four(*size)
        figure = pictures.comparison(guide, source, bicubic, depth, unit="m", truth=depth)
        drawn(figure)
        assert len(panels(figure)) == 10
        assert {"guide", "source", "bicubic", "result", "truth"} <= set(texts(figure))

    def test_titles_give_the_mean_absolute_error_when_truth_is_known(self):
        guide, source, bicubic, depth = four(48, 64)
        figure = pictures.comparison(guide, source, bicubic, depth + 0.25, unit="m", truth=depth)
        assert "MAE 0.250 m" in texts(figure)

    def test_pixels_without_truth_do_not_count(self):
        guide, source, bicubic, depth = four(48, 64)
        truth = depth.copy()
        truth[:24] = np.nan
        result = depth + np.where(np.arange(48) < 24, 9, 0.5)[:, None]
        assert "MAE 0.500" in texts(pictures.comparison(guide, source, bicubic, result, truth=truth))

    def test_the_enlargement_shows_the_densest_edges(self):
        values = np.zeros((80, 120))
        values[50:70, 80:110:2] = 1
        figure = pictures.comparison(np.zeros((80, 120, 3), np.uint8), values[::8, ::8], values, values)
        left, right, bottom, top = panels(figure)[1].images[0].get_extent()
        assert (left >= 78) & (right <= 112)
        assert (top >= 48) & (bottom <= 72)

    def test_edges_of_holes_are_not_edges(self):
        values = np.zeros((80, 120))
        values[50:70, 80:110:4] = 1
        values[5:25, 10:40:2] = np.nan
        figure = pictures.comparison(np.zeros((80, 120, 3), np.uint8), values[::8, ::8], values, values)
        assert panels(figure)[1].images[0].get_extent()[0] > 60

    def test_invalid_cells_and_pixels_are_neutral_and_named(self):
        guide, source, bicubic, depth = four(48, 64)
        source_valid = np.ones(source.shape, bool)
        source_valid[0, 0] = False
        figure = pictures.comparison(guide, source, bicubic, depth, source_valid=source_valid)
        assert has_colour(drawn(figure), NEUTRAL)
        assert "no value" in texts(figure)

    def test_source_pixels_keep_their_values_at_a_fractional_ratio(self):
        source = np.array([[0.0, 1.0], [2.0, 3.0]])
        shown, _ = pick(source, np.ones((2, 2), bool), (5, 7), (slice(0, 5), slice(0, 7)))
        assert shown.shape == (5, 7)
        assert set(np.unique(shown)) == {0.0, 1.0, 2.0, 3.0}

    @pytest.mark.parametrize(
        "guide",
        [
            np.zeros((16, 24), np.uint8),
            np.random.default_rng(0).integers(0, 4000, (16, 24, 1), dtype=np.uint16),
            np.random.default_rng(0).integers(0, 4000, (16, 24, 2), dtype=np.uint16),
            np.random.default_rng(0).random((16, 24, 6), np.float32),
            np.full((16, 24, 3), np.nan),
            np.full((16, 24, 3), 7.0),
        ],
        ids=["gray", "one band", "two bands", "many bands", "nan", "constant"],
    )
    def test_any_kind_of_guide_is_shown_as_rgb(self, guide):
        values = np.random.default_rng(1).random((16, 24))
        figure = pictures.comparison(guide, values[::4, ::4], values, values)
        shown = panels(figure)[0].images[0].get_array()
        assert shown.shape == (16, 24, 3)
        drawn(figure)

    def test_a_16_bit_guide_uses_all_levels_of_the_screen(self):
        guide = np.linspace(1000, 3000, 16 * 24 * 3).reshape(16, 24, 3).astype(np.uint16)
        shown = guide_painter(guide)((slice(0, 16), slice(0, 24)))
        assert shown.min() == 0
        assert shown.max() == 255

    def test_a_large_guide_is_shrunk(self):
        shown = guide_painter(np.zeros((50, 6000, 3), np.uint8))((slice(0, 50), slice(0, 6000)))
        assert shown.shape == (50, DISPLAY, 3)

    @pytest.mark.parametrize("name", ["guide", "bicubic", "truth"])
    def test_a_size_that_does_not_fit_is_named(self, name):
        values = {"guide": np.ones((8, 8, 3)), "bicubic": np.ones((8, 8)), "truth": np.ones((8, 8))}
        values[name] = np.ones((8, 9, 3)[: values[name].ndim])
        with pytest.raises(InputError, match=name):
            pictures.comparison(source=np.ones((2, 2)), result=np.ones((8, 8)), **values)

    def test_nothing_valid_at_all_is_drawn(self):
        empty = np.full((8, 8), np.nan)
        drawn(pictures.comparison(np.zeros((8, 8, 3), np.uint8), empty[:2, :2], empty, empty, truth=empty))


class TestErrorMap:
    def test_one_symmetric_scale_serves_all_panels(self):
        random = np.random.default_rng(0)
        errors = {"a": random.normal(0.3, 1, (30, 40)), "b": random.normal(0, 0.1, (30, 40))}
        figure = pictures.error_map(errors, "m")
        low, high = bar_limits(figure)
        assert low == -high
        assert len(panels(figure)) == 2

    def test_no_error_is_the_lightest_colour_and_signs_differ(self):
        figure = pictures.error_map({"a": np.array([[-1.0, 0.0, 1.0]])}, range=1.0)
        negative, zero, positive = panels(figure)[0].images[0].get_array()[0].astype(int)
        assert zero.min() > 240
        assert negative[2] > negative[0]
        assert positive[0] > positive[2]

    def test_titles_give_mean_absolute_and_root_mean_square(self):
        assert "MAE 3.50 m, RMSE 3.54 m" in texts(pictures.error_map({"a": np.array([[3.0, -4.0, np.nan]])}, "m"))

    @pytest.mark.parametrize("value", [0.0, 2.0, np.nan])
    @pytest.mark.parametrize("size", [(1, 1), (4, 40), (40, 4)])
    def test_constant_and_empty_errors_are_drawn(self, value, size):
        drawn(pictures.error_map({"a": np.full(size, value), "b": np.zeros(size)}, "K"))

    def test_many_methods_continue_in_a_second_row(self):
        figure = pictures.error_map({str(k): np.eye(6) for k in range(6)})
        assert len({round(axes.get_position().y0, 3) for axes in panels(figure)}) == 2

    def test_no_map_different_sizes_and_a_negative_range_are_refused(self):
        with pytest.raises(InputError, match="at least one"):
            pictures.error_map({})
        with pytest.raises(InputError, match="must agree"):
            pictures.error_map({"a": np.ones((2, 2)), "b": np.ones((2, 3))})
        with pytest.raises(InputError, match="empty"):
            pictures.error_map({"a": np.ones((2, 2))}, range=-1.0)


class TestSave:
    def test_the_file_is_a_png_of_the_asked_resolution(self, tmp_path):
        figure = pictures.preview(np.eye(20))
        pictures.save(figure, tmp_path / "a.png", dpi=80)
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        height, width, _ = cv2.imread(str(tmp_path / "a.png")).shape
        assert (width, height) == pytest.approx(80 * figure.get_size_inches(), abs=1)

    def test_the_same_picture_is_the_same_file(self, tmp_path):
        for name in ("a.png", "b.png"):
            pictures.save(pictures.preview(np.eye(20), unit="m"), tmp_path / name)
        assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        path = tmp_path / "a.png"
        path.write_bytes(b"old")
        figure = pictures.preview(np.eye(20))

        def fail(file, **_):
            file.write(b"half")
            raise OSError("no space")

        monkeypatch.setattr(figure, "savefig", fail)
        with pytest.raises(OSError, match="no space"):
            pictures.save(figure, path)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_missing_folder_is_an_error(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            pictures.save(pictures.preview(np.eye(3)), tmp_path / "none" / "a.png")


def test_importing_does_not_load_matplotlib_and_drawing_does_not_load_pyplot():
    program = (
        "import sys, numpy, dada.pictures as p; assert 'matplotlib' not in sys.modules;"
        "p.preview(numpy.eye(3)); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
