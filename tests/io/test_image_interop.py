"""Files of other software are read as it wrote them, and it reads ours."""

import io
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import ImageWarning, Meaning, read_image, write_image
from dada.rasters.files import read_info

cv2 = pytest.importorskip("cv2")
rasterio = pytest.importorskip("rasterio")
OpenEXR = pytest.importorskip("OpenEXR")
tifffile = pytest.importorskip("tifffile")
imageio = pytest.importorskip("imageio.v3")
Image = pytest.importorskip("PIL.Image")

random = np.random.default_rng(5)
DEPTH = random.integers(0, 65535, (23, 31), dtype=np.uint16)
GREY = random.integers(0, 255, (23, 31), dtype=np.uint8)
RGB = random.integers(0, 255, (23, 31, 3), dtype=np.uint8)
FLOAT = random.normal(0, 9, (23, 31)).astype(np.float32)


def guide(path: Path) -> np.ndarray:
    return read_image(path, role="guide").values


class TestPng:
    def test_opencv(self, tmp_path: Path):
        cv2.imwrite(str(tmp_path / "d.png"), DEPTH)
        cv2.imwrite(str(tmp_path / "c.png"), RGB[..., ::-1])
        np.testing.assert_array_equal(read_image(tmp_path / "d.png").values, DEPTH)
        np.testing.assert_array_equal(guide(tmp_path / "c.png"), RGB)
        write_image(tmp_path / "e.png", DEPTH)
        np.testing.assert_array_equal(cv2.imread(str(tmp_path / "e.png"), cv2.IMREAD_UNCHANGED), DEPTH)

    def test_imageio(self, tmp_path: Path):
        imageio.imwrite(tmp_path / "d.png", DEPTH)
        imageio.imwrite(tmp_path / "c.png", RGB)
        np.testing.assert_array_equal(read_image(tmp_path / "d.png").values, DEPTH)
        np.testing.assert_array_equal(guide(tmp_path / "c.png"), RGB)
        write_image(tmp_path / "e.png", DEPTH)
        write_image(tmp_path / "f.png", RGB)
        np.testing.assert_array_equal(imageio.imread(tmp_path / "e.png"), DEPTH)
        np.testing.assert_array_equal(imageio.imread(tmp_path / "f.png"), RGB)

    def test_sixteen_bit_rgb_keeps_all_bits(self, tmp_path: Path):
        deep = random.integers(0, 65535, (23, 31, 3), dtype=np.uint16)
        cv2.imwrite(str(tmp_path / "c.png"), deep[..., ::-1])
        np.testing.assert_array_equal(guide(tmp_path / "c.png"), deep)

    @pytest.mark.parametrize("mode", ["RGBA", "LA"])
    def test_alpha_of_a_guide_is_dropped_with_a_warning(self, tmp_path: Path, mode: str):
        picture = Image.fromarray(RGB).convert(mode)
        picture.save(tmp_path / "a.png")
        with pytest.warns(ImageWarning, match="alpha"):
            values = guide(tmp_path / "a.png")
        expected = RGB if mode == "RGBA" else np.asarray(picture)[..., 0]
        np.testing.assert_array_equal(values, expected)

    @pytest.mark.parametrize("mode", ["RGBA", "LA"])
    def test_alpha_of_a_source_is_refused(self, tmp_path: Path, mode: str):
        Image.fromarray(RGB).convert(mode).save(tmp_path / "a.png")
        with pytest.raises(InputError, match="alpha"):
            read_image(tmp_path / "a.png")

    def test_a_colour_palette_is_resolved_for_a_guide_and_refused_for_a_source(self, tmp_path: Path):
        picture = Image.fromarray(RGB).quantize(17)
        picture.save(tmp_path / "p.png")
        np.testing.assert_array_equal(guide(tmp_path / "p.png"), np.asarray(picture.convert("RGB")))
        with pytest.raises(InputError, match="palette"):
            read_image(tmp_path / "p.png")

    def test_a_grey_palette_is_grey_for_a_source(self, tmp_path: Path):
        levels = GREY // 16 * 16
        Image.fromarray(levels).convert("P").save(tmp_path / "p.png")
        np.testing.assert_array_equal(read_image(tmp_path / "p.png").values, levels)

    def test_bits_of_a_mask_are_kept_for_a_source_and_stretched_for_a_guide(self, tmp_path: Path):
        Image.fromarray(GREY > 100).save(tmp_path / "m.png")
        np.testing.assert_array_equal(read_image(tmp_path / "m.png").values, GREY > 100)
        np.testing.assert_array_equal(guide(tmp_path / "m.png"), (GREY > 100) * np.uint8(255))

    def test_three_equal_channels_count_as_one_with_a_warning(self, tmp_path: Path):
        cv2.imwrite(str(tmp_path / "g.png"), np.dstack([GREY] * 3))
        with pytest.warns(ImageWarning, match="equal"):
            np.testing.assert_array_equal(read_image(tmp_path / "g.png").values, GREY)


class TestJpeg:
    def test_colours_come_in_the_order_of_pillow(self, tmp_path: Path):
        Image.fromarray(RGB).save(tmp_path / "a.jpg", quality=95, subsampling=0)
        difference = guide(tmp_path / "a.jpg").astype(int) - np.asarray(Image.open(tmp_path / "a.jpg"))
        assert np.abs(difference).max() <= 3

    @pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}])
    def test_grey_progressive_and_restart_markers(self, tmp_path: Path, options):
        Image.fromarray(GREY).save(tmp_path / "a.jpeg", **options)
        assert guide(tmp_path / "a.jpeg").shape == GREY.shape

    def test_a_thumbnail_within_and_bytes_after_the_end_do_no_harm(self, tmp_path: Path):
        thumbnail, whole = io.BytesIO(), io.BytesIO()
        Image.fromarray(RGB[:8, :8]).save(thumbnail, "JPEG")
        Image.fromarray(RGB).save(whole, "JPEG")
        block = b"\xff\xe2" + struct.pack(">H", 2 + len(thumbnail.getvalue())) + thumbnail.getvalue()
        data = whole.getvalue()
        (tmp_path / "a.jpg").write_bytes(data[:2] + block + data[2:] + b"later pictures of a phone")
        assert guide(tmp_path / "a.jpg").shape == RGB.shape

    def test_exif_orientation_is_not_applied_but_warned_of(self, tmp_path: Path):
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(RGB).save(tmp_path / "a.jpg", exif=exif.tobytes())
        with pytest.warns(ImageWarning, match="orientation"):
            assert guide(tmp_path / "a.jpg").shape == RGB.shape


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
class TestTiff:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "float32", "float64"])
    @pytest.mark.parametrize("compression", [None, "zlib"])
    def test_tifffile(self, tmp_path: Path, dtype: str, compression):
        values = DEPTH.astype(dtype)
        tifffile.imwrite(tmp_path / "a.tif", values, compression=compression, byteorder=">")
        read = read_image(tmp_path / "a.tif").values
        assert read.dtype == values.dtype
        assert read.dtype.isnative
        np.testing.assert_array_equal(read, values)
        write_image(tmp_path / "b.tif", values)
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "b.tif"), values)

    def test_tifffile_colours(self, tmp_path: Path):
        tifffile.imwrite(tmp_path / "a.tif", RGB, photometric="rgb", planarconfig="contig")
        np.testing.assert_array_equal(guide(tmp_path / "a.tif"), RGB)
        write_image(tmp_path / "b.tif", RGB)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "b.tif")), RGB)

    def test_opencv_reads_ours(self, tmp_path: Path):
        write_image(tmp_path / "a.tif", FLOAT)
        np.testing.assert_array_equal(cv2.imread(str(tmp_path / "a.tif"), cv2.IMREAD_UNCHANGED), FLOAT)

    def test_gdal_tags_are_kept(self, tmp_path: Path):
        transform = rasterio.Affine(10.0, 0.0, 399960.0, 0.0, -10.0, 5300040.0)
        with rasterio.open(
            tmp_path / "a.tif", "w", driver="GTiff", height=23, width=31, count=1, dtype="int16",
            crs="EPSG:32632", transform=transform, nodata=-32768, tiled=True, blockxsize=16, blockysize=16,
        ) as file:  # fmt: skip
            file.write(DEPTH.astype(np.int16), 1)
        read = read_image(tmp_path / "a.tif")
        assert read.nodata == -32768
        assert read.georeference.transform == (10.0, 0.0, 399960.0, 0.0, -10.0, 5300040.0)
        write_image(tmp_path / "b.tif", read.values, nodata=read.nodata, georeference=read.georeference)
        with rasterio.open(tmp_path / "b.tif") as file:
            assert file.crs.to_epsg() == 32632
            assert file.transform == transform
            assert file.nodata == -32768
            assert file.compression.name == "deflate"
            np.testing.assert_array_equal(file.read(1), DEPTH.astype(np.int16))

    def test_a_band_is_picked_by_its_number(self, tmp_path: Path):
        write_image(tmp_path / "a.tif", np.dstack([DEPTH, DEPTH + 1, DEPTH, DEPTH, DEPTH]))
        np.testing.assert_array_equal(read_image(tmp_path / "a.tif", key="2").values, DEPTH + 1)
        for key in (None, "0", "6", "x", "²"):
            with pytest.raises(InputError, match="band"):
                read_image(tmp_path / "a.tif", key=key)

    def test_a_palette_is_resolved_for_a_guide_and_refused_for_a_source(self, tmp_path: Path):
        picture = Image.fromarray(RGB).quantize(17)
        picture.save(tmp_path / "p.tif")
        np.testing.assert_array_equal(guide(tmp_path / "p.tif"), np.asarray(picture.convert("RGB")))
        with pytest.raises(InputError, match="palette"):
            read_image(tmp_path / "p.tif")

    def test_alpha_of_a_guide_is_dropped_with_a_warning(self, tmp_path: Path):
        Image.fromarray(RGB).convert("RGBA").save(tmp_path / "a.tif")
        with pytest.warns(ImageWarning, match="alpha"):
            np.testing.assert_array_equal(guide(tmp_path / "a.tif"), RGB)
        with pytest.raises(InputError, match="alpha"):
            read_image(tmp_path / "a.tif")

    def test_what_is_not_applied_is_warned_of(self, tmp_path: Path):
        with rasterio.open(
            tmp_path / "a.tif", "w", driver="GTiff", height=64, width=64, count=1, dtype="uint16", tiled=True,
            blockxsize=32, blockysize=32, sparse_ok=True,
        ) as file:  # fmt: skip
            file.write(np.ones((32, 32), np.uint16), 1, window=((0, 32), (0, 32)))
            file.scales, file.offsets = (0.01,), (3.0,)
            file.units, file.descriptions = ("K",), ("brightness",)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            raster = read_image(tmp_path / "a.tif")
        told = " ".join(str(one.message) for one in caught)
        assert raster.meaning == Meaning(0.01, 3.0, "K", "brightness")  # for the caller to apply
        assert "3 of its blocks" in told

    @pytest.mark.parametrize("role", ["source", "guide"])
    def test_an_image_placed_by_control_points_alone_is_refused(self, tmp_path: Path, role):
        corners = [rasterio.control.GroundControlPoint(r, c, 10.0 * c, -10.0 * r) for r in (0, 23) for c in (0, 31)]
        with rasterio.open(
            tmp_path / "a.tif", "w", driver="GTiff", height=23, width=31, count=1, dtype="uint8", gcps=corners,
            crs="EPSG:32632",
        ) as file:  # fmt: skip
            file.write(RGB[:23, :31, 0], 1)
        with pytest.raises(InputError, match=r"control points \(GCP\) alone.*gdalwarp IN"):
            read_image(tmp_path / "a.tif", role=role)

    @pytest.mark.parametrize("role", ["source", "guide"])
    def test_an_image_placed_by_coefficients_alone_is_refused(self, tmp_path: Path, role):
        numbers = dict.fromkeys(
            ("height_off", "lat_off", "line_off", "long_off", "samp_off", "err_bias", "err_rand"), 0
        )
        numbers |= dict.fromkeys(("height_scale", "lat_scale", "line_scale", "long_scale", "samp_scale"), 1)
        sides = (f"{side}_{part}_coeff" for side in ("line", "samp") for part in ("num", "den"))
        with rasterio.open(
            tmp_path / "a.tif", "w", driver="GTiff", height=23, width=31, count=1, dtype="uint8"
        ) as file:  # fmt: skip
            file.rpcs = rasterio.rpc.RPC(**numbers, **dict.fromkeys(sides, [0.0] * 20))
            file.write(RGB[:23, :31, 0], 1)
        with pytest.raises(InputError, match=r"coefficients \(RPC\) alone.*gdalwarp -rpc IN"):
            read_image(tmp_path / "a.tif", role=role)
        with pytest.raises(InputError, match=r"coefficients \(RPC\) alone.*gdalwarp -rpc IN"):
            read_info(tmp_path / "a.tif", role)


class TestPfm:
    @pytest.mark.parametrize("scale", ["-1", "1.0", "-1.000000"])
    @pytest.mark.parametrize("colour", [False, True])
    @pytest.mark.parametrize("newline", ["\n", "\r\n", " \n"])
    def test_rows_from_the_bottom_in_either_byte_order(self, tmp_path: Path, scale, colour, newline):
        values = np.dstack([FLOAT, FLOAT + 1, FLOAT + 2]) if colour else FLOAT
        header = newline.join(["PF" if colour else "Pf", "31 23", scale, ""]).encode()
        data = values[::-1].astype("<f4" if float(scale) < 0 else ">f4").tobytes()
        (tmp_path / "a.pfm").write_bytes(header + data)
        read = read_image(tmp_path / "a.pfm", role="guide").values
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, values)

    def test_opencv(self, tmp_path: Path):
        cv2.imwrite(str(tmp_path / "a.pfm"), FLOAT)
        np.testing.assert_array_equal(read_image(tmp_path / "a.pfm").values, FLOAT)
        write_image(tmp_path / "b.pfm", FLOAT)
        np.testing.assert_array_equal(cv2.imread(str(tmp_path / "b.pfm"), cv2.IMREAD_UNCHANGED), FLOAT)

    def test_a_scale_is_warned_of_and_not_applied(self, tmp_path: Path):
        (tmp_path / "a.pfm").write_bytes(b"Pf\n31 23\n-0.003922\n" + FLOAT[::-1].tobytes())
        with pytest.warns(ImageWarning, match=r"0\.003922"):
            np.testing.assert_array_equal(read_image(tmp_path / "a.pfm").values, FLOAT)


class TestNumpy:
    @pytest.mark.parametrize("values", [FLOAT, FLOAT.astype(">f8"), np.asfortranarray(DEPTH)], ids=str)
    def test_save_and_load(self, tmp_path: Path, values):
        np.save(tmp_path / "a.npy", values)
        read = read_image(tmp_path / "a.npy").values
        assert read.dtype == values.dtype.newbyteorder("=")
        assert read.flags.c_contiguous
        np.testing.assert_array_equal(read, values)
        write_image(tmp_path / "b.npy", FLOAT)
        np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), FLOAT)

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_an_array_is_picked_by_its_key(self, tmp_path: Path, save):
        save(tmp_path / "a.npz", depth=FLOAT, other=DEPTH)
        np.testing.assert_array_equal(read_image(tmp_path / "a.npz", key="depth").values, FLOAT)
        for key in (None, "Depth"):
            with pytest.raises(InputError, match="'depth', 'other'"):
                read_image(tmp_path / "a.npz", key=key)

    def test_the_only_array_needs_no_key(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", anything=FLOAT)
        np.testing.assert_array_equal(read_image(tmp_path / "a.npz").values, FLOAT)
        write_image(tmp_path / "b.npz", FLOAT)
        np.testing.assert_array_equal(np.load(tmp_path / "b.npz")["values"], FLOAT)

    def test_channels_first_is_recognised_with_a_warning(self, tmp_path: Path):
        np.save(tmp_path / "a.npy", np.moveaxis(RGB, -1, 0))
        with pytest.warns(ImageWarning, match="channels, height, width"):
            np.testing.assert_array_equal(guide(tmp_path / "a.npy"), RGB)


class TestOpenExr:
    def write(self, path: Path, channels: dict, **header) -> None:
        header = {"compression": OpenEXR.PIZ_COMPRESSION, "type": OpenEXR.scanlineimage} | header
        with OpenEXR.File(header, channels) as file:
            file.write(str(path))

    @pytest.mark.parametrize("name", ["Y", "Z", "depth", "ViewLayer.Depth.Z"])
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint32])
    def test_a_single_channel_of_any_name(self, tmp_path: Path, name: str, dtype):
        values = np.abs(FLOAT).astype(dtype)
        self.write(tmp_path / "a.exr", {name: values})
        read = read_image(tmp_path / "a.exr").values
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, values)

    def test_one_of_several_is_picked_by_key(self, tmp_path: Path):
        half = np.dstack([FLOAT, FLOAT + 1, FLOAT + 2]).astype(np.float16)
        self.write(tmp_path / "a.exr", {"RGB": half, "Z": FLOAT})
        np.testing.assert_array_equal(read_image(tmp_path / "a.exr", key="Z").values, FLOAT)
        np.testing.assert_array_equal(guide(tmp_path / "a.exr"), half)
        for key in (None, "z"):
            with pytest.raises(InputError, match="'B', 'G', 'R', 'Z'"):
                read_image(tmp_path / "a.exr", key=key)

    def test_a_layer_of_a_guide_is_picked_by_key(self, tmp_path: Path):
        layer = {f"View.Combined.{c}": FLOAT + i for i, c in enumerate("RGBA")}
        self.write(tmp_path / "a.exr", layer | {"View.Depth.Z": FLOAT})
        with pytest.warns(ImageWarning, match="alpha"):
            read = read_image(tmp_path / "a.exr", key="View.Combined", role="guide").values
        np.testing.assert_array_equal(read, np.dstack([FLOAT, FLOAT + 1, FLOAT + 2]))

    def test_tiles(self, tmp_path: Path):
        tiles = {"type": OpenEXR.tiledimage, "tiles": OpenEXR.TileDescription()}
        self.write(tmp_path / "a.exr", {"Z": FLOAT}, **tiles)
        np.testing.assert_array_equal(read_image(tmp_path / "a.exr").values, FLOAT)

    def test_the_library_reads_ours(self, tmp_path: Path):
        write_image(tmp_path / "a.exr", FLOAT)
        write_image(tmp_path / "b.exr", np.dstack([FLOAT, FLOAT + 1, FLOAT + 2]))
        with OpenEXR.File(str(tmp_path / "a.exr")) as file:
            np.testing.assert_array_equal(file.channels()["Y"].pixels, FLOAT)
        with OpenEXR.File(str(tmp_path / "b.exr")) as file:
            np.testing.assert_array_equal(file.channels()["RGB"].pixels[..., 2], FLOAT + 2)
