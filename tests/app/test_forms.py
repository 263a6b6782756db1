"""Facts about forms: files arrive as they were sent, under harmless names; what is no form is refused."""

import io

import pytest

from dada.app.forms import MalformedError, clean_name, read_form
from dada.app.requests import FieldError, options_of, read_fields

KIND = "multipart/form-data; boundary=XX"


def part(name, content, file=None):
    extra = "" if file is None else f'; filename="{file}"'
    return f'--XX\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'.encode() + content + b"\r\n"


def read(folder, *parts, kind=KIND, end=b"--XX--\r\n"):
    body = b"".join(parts) + end
    return read_form(io.BytesIO(body), len(body), kind, folder)


def test_texts_and_files_arrive_as_they_were_sent(tmp_path):
    content = bytes(range(256)) * 9 + b"\r\n--X\r\n\r\n--"
    form = read(tmp_path, part("unit", b" mm "), part("source", content, "depth.png"), part("guide", b"g", "rgb.png"))
    assert form.texts == {"unit": "mm"}
    assert form.files["source"].read_bytes() == content
    assert form.files["source"].name == "depth.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["depth.png", "rgb.png"]  # and nothing else


def test_two_files_of_one_name_stay_two(tmp_path):
    form = read(tmp_path, part("source", b"s", "0001.png"), part("guide", b"g", "0001.png"))
    assert [path.read_bytes() for path in form.files.values()] == [b"s", b"g"]
    assert form.files["guide"].name == "2_0001.png"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\depth.png", "depth.png"),
        (".hidden.png", "hidden.png"),
        ("--report.png", "report.png"),
        ("a\x00b:c?.png", "a_b_c_.png"),
        ("Tiefe übersicht.png", "Tiefe übersicht.png"),
        ("", "file"),
        ("x" * 400 + ".png", "x" * 100 + ".png"),
    ],
)
def test_names_become_harmless(sent, kept):
    assert clean_name(sent) == kept


@pytest.mark.parametrize(
    ("parts", "kind", "end", "message"),
    [
        ([], "application/json", b"", "content type"),
        ([], "multipart/form-data", b"", "content type"),
        ([], KIND, b"", "empty"),
        ([b"nothing of the kind"], KIND, b"", "boundary"),
        ([part("source", b"s", "a.png")], KIND, b"", "no end"),
        ([b"--XX\r\nno header"], KIND, b"\r\n--XX--", "header"),
        ([b"--XX\r\nContent-Disposition: form-data\r\n\r\nx\r\n"], KIND, b"--XX--", "no name"),
        ([part("unit", b"mm"), part("unit", b"cm")], KIND, b"--XX--", "twice"),
        ([part("unit", b"m" * 9000)], KIND, b"--XX--", "bytes of text"),
        ([part(f"f{i}", b"") for i in range(80)], KIND, b"--XX--", "more than"),
    ],
)
def test_what_is_no_form_is_refused_and_leaves_no_body(tmp_path, parts, kind, end, message):
    with pytest.raises(MalformedError, match=message):
        read(tmp_path, *parts, kind=kind, end=end)
    assert not (tmp_path / ".body").exists()


def test_a_request_that_ends_too_early_is_refused(tmp_path):
    with pytest.raises(MalformedError, match="too early"):
        read_form(io.BytesIO(b"--XX"), 4000, KIND, tmp_path)


def test_fields_are_options_of_the_command():
    values = read_fields({"unit": "cm", "fill": "yes", "invalid": "nan", "steps": "", "range": "1,2.5", "factor": "8"})
    assert values["range"] == (1.0, 2.5)
    assert "steps" not in values
    options = options_of(values)
    assert (options.unit, options.fill, options.invalid != options.invalid) == ("cm", True, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unit", "furlong"),
        ("dtype", "complex64"),
        ("invalid", "none"),
        ("fill", "perhaps"),
        ("adjust", "both"),
        ("range", "1"),
        ("intrinsics", "1,2"),
        ("field_of_view", "400"),
        ("factor", "1"),
        ("colour", "red"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(name, text):
    with pytest.raises(FieldError, match=name if name != "intrinsics" else "fx") as refused:
        read_fields({name: text})
    assert refused.value.field == name
