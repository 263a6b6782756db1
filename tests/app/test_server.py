"""Facts about the API: the command's own results and messages, limits, a queue, and no file left."""

import http.client
import json
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from dada.app.client import Client, ServerError
from dada.app.desk import Desk
from dada.app.jobs import Entry, blamed
from dada.app.limits import Limits
from dada.app.requests import Request
from dada.app.server import Server
from dada.app.serving import announcement
from dada.app.working import work
from dada.cli import main
from dada.errors import InputError
from dada.io import read_image, write_image
from tests.app.conftest import Running


@pytest.fixture(scope="module")
def client(server: Running) -> Client:
    return Client(server.url)


def ask(url, method, path, body=None, **headers):
    """One request as it is written here."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer, data


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Run a command that the page shows, beside the files."""

    def run(words: str) -> None:
        monkeypatch.chdir(tmp_path)
        _, *arguments = shlex.split(words)
        assert main(arguments) == 0

    return run


def test_the_result_is_that_of_the_command_bit_for_bit(client, command, pair, tmp_path):
    for path in pair:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with client:
        job = client.submit(*pair, unit="cm", range="10,400", intrinsics="120,120,64,48", fill="yes")
        status = client.wait(job)
        for file in status["files"]:
            client.download(job, tmp_path / f"page_{file['name']}", file["what"])
    command(status["command"])
    assert {file["what"] for file in status["files"]} == {"result", "preview", "point cloud", "report"}
    for file in status["files"]:
        ours, theirs = ((tmp_path / name).read_bytes() for name in (f"page_{file['name']}", file["name"]))
        if file["what"] == "report":
            reports = [json.loads(data) for data in (ours, theirs)]
            for report in reports:
                del report["seconds"]
            assert reports[0] == reports[1]
        else:
            assert ours == theirs, file


def test_floats_come_back_as_the_command_writes_them(client, command, pair, tmp_path):
    metres = read_image(pair[0]).values.astype(np.float32) / 1000
    write_image(tmp_path / "height.tiff", np.where(metres > 0, metres, np.nan))
    (tmp_path / "rgb.png").write_bytes(pair[1].read_bytes())
    with client:
        job = client.submit(tmp_path / "height.tiff", tmp_path / "rgb.png", model="none")
        status = client.wait(job)
        client.download(job, tmp_path / "page.tiff")
    command(status["command"])
    assert (tmp_path / "page.tiff").read_bytes() == (tmp_path / "height_upsampled.tiff").read_bytes()


def test_one_request_answers_with_the_result_and_leaves_nothing(server, pair, tmp_path):
    before = set(server.folders())
    subprocess.run(
        ["curl", "-sS", "--fail", "-F", f"source=@{pair[0]}", "-F", f"guide=@{pair[1]}", "-F", "model=none",
         f"{server.url}/api/upsample", "-o", tmp_path / "fine.png"],
        check=True,
    )  # fmt: skip
    assert read_image(tmp_path / "fine.png").values.shape == (96, 128)
    assert server.forgets(before)


def test_a_report_in_plain_words(client, pair):
    with client:
        status = client.wait(client.submit(*pair))
    facts = dict(status["facts"])
    assert facts["Source"] == "16 x 12 pixels"
    assert facts["Result"] == "128 x 96 pixels, uint16 millimetres"
    assert facts["Factor"] == "x8"
    assert "at most" in facts["Averaged back down"]
    assert facts["Invalid"].startswith("1 of 192 source cells; 64 pixels of the result stay invalid")
    assert "60 degrees assumed" in facts["Points"]
    assert status["errors"] == {}


def test_a_self_test_shows_its_error(client, pair, tmp_path):
    scene = np.tile(np.linspace(1000, 3000, 128), (96, 1)).astype(np.uint16)
    scene[:, 60:] += 900
    scene[:5, :5] = 0
    write_image(tmp_path / "fine.png", scene)
    with client:
        job = client.submit(tmp_path / "fine.png", pair[1], factor=8, model="none")
        status = client.wait(job)
        client.download(job, tmp_path / "coarse.tiff", "averaged source")
        assert client.inspect(source=tmp_path / "coarse.tiff")["width"] == 16
    assert status["errors"]["bicubic"]["mae"] > 0
    assert set(status["errors"]) == {"bicubic", "result"}
    cell = scene[8:16, 56:64].astype(float).mean()
    assert read_image(tmp_path / "coarse.tiff").values[1, 7] == pytest.approx(cell, rel=1e-6)
    assert "fine_averaged_x8.tiff" in status["command"]
    assert "--unit mm" in status["command"]


def test_a_self_test_wants_a_source_of_the_guides_size(client, pair):
    with client, pytest.raises(InputError, match="as fine as the guide"):
        client.wait(client.submit(*pair, factor=4))


@pytest.mark.parametrize(("name", "label"), [("room", "mm"), ("thermal", "°C"), ("height", "m")])
def test_examples_beat_bicubic(client, name, label):
    with client:
        status = client.wait(client.submit(example=name, model="none"))
    assert status["unit"] == label
    assert status["errors"]["result"]["mae"] < status["errors"]["bicubic"]["mae"]
    assert not status["warnings"]


def test_errors_are_in_the_unit_of_the_result(client):
    fields = {"output_unit": "m", "format": "tiff", "dtype": "float32", "model": "none"}
    with client:
        status = client.wait(client.submit(example="room", **fields))
    assert status["unit"] == "m"
    assert 0 < status["errors"]["result"]["mae"] < 0.1
    assert "-o room_depth_upsampled.tiff" in status["command"]


def test_a_stated_field_of_view_is_the_camera(client, pair):
    with client:
        status = client.wait(client.submit(*pair, model="none", field_of_view=90))
    assert "a field of view of 90 degrees stated, camera 64.0,64.0,63.5,47.5" in dict(status["facts"])["Points"]
    assert "--intrinsics 64.0,64.0,63.5,47.5" in status["command"]


def test_a_guide_above_the_limit_is_refused_beside_it(monkeypatch, pair):
    monkeypatch.chdir(pair[0].parent)
    request = Request("depth.png", "rgb.png", megapixels=0.01)
    with pytest.raises(InputError, match=r"^rgb\.png: the guide has 128 x 96 pixels.*takes 0\.01 million") as refused:
        work(request, lambda text: None)
    entry = Entry("id", Path(), request, "refused", message=str(refused.value))
    assert blamed(entry) == "guide"


def test_what_a_file_holds_is_found_as_the_command_finds_it(client, pair, tmp_path):
    found = client.inspect(source=pair[0])
    wanted = {"format": "PNG", "width": 16, "height": 12, "dtype": "uint16", "unit": "mm", "invalid": "0"}
    assert found["invalid_pixels"] == 1
    assert {name: found[name] for name in wanted} == wanted
    write_image(tmp_path / "a.pfm", np.ones((4, 5), np.float32))
    found = client.inspect(source=tmp_path / "a.pfm")
    assert (found["unit"], found["invalid"]) == ("m", "NaN")
    assert client.inspect(guide=pair[1])["bands"] == 3


def test_messages_name_the_file_that_they_are_about(server, client, pair, tmp_path):
    cut = tmp_path / "cut.png"
    cut.write_bytes(pair[0].read_bytes()[:-30])
    with pytest.raises(InputError, match=r"^cut\.png: "):
        client.inspect(source=cut)
    with client:
        job = client.submit(cut, pair[1])
        client.status(job, wait=20)
        with pytest.raises(InputError, match=r"^cut\.png: "):
            client.wait(job)
        assert client.status(job)["error"]["file"] == "source"
        job = client.submit(pair[1], pair[0])  # swapped
        with pytest.raises(InputError, match="swap the two files"):
            client.wait(job)
        assert client.status(job)["error"]["file"] == "source"


def test_a_model_of_the_servers_machine_is_not_offered(client, pair, tmp_path):
    with client, pytest.raises(InputError, match="not offered"):
        client.wait(client.submit(*pair, model=str(tmp_path)))


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("GET", "/..%2f..%2fetc%2fpasswd", {}, 404),
        ("GET", "/api/jobs/nobody", {}, 404),
        ("GET", "/api/examples/room/..%2f..%2fjobs", {}, 404),
        ("GET", "/api/examples/nobody/a.png", {}, 404),
        ("POST", "/api", {}, 404),
        ("POST", "/api/jobs", {"Content_Length": "nine"}, 411),
        ("POST", "/api/jobs", {"Content_Length": "900000000"}, 413),
        ("POST", "/api/jobs", {"Content_Type": "text/plain", "Content_Length": "0"}, 400),
        ("GET", "/", {"Host": "dada.example"}, 403),
        ("POST", "/api/jobs", {"Origin": "http://elsewhere.example", "Content_Length": "0"}, 403),
        ("DELETE", "/api/jobs/nobody", {}, 404),
    ],
)
def test_bad_requests_are_answered_in_words(server, method, path, headers, status):
    answer, data = ask(server.url, method, path, **headers)
    assert answer.status == status
    assert json.loads(data)["error"]["message"].endswith(".")


def test_nothing_is_loaded_from_elsewhere(server):
    page = Path(__file__).parents[2] / "src" / "dada" / "app" / "page"
    for file in page.iterdir():
        answer, data = ask(server.url, "GET", f"/{file.name}")
        assert answer.status == 200
        assert b"//" not in data.replace(b"http://www.w3.org/2000/svg", b"").replace(b"// ", b"")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_job_that_takes_too_long_is_stopped_and_the_next_is_done(pair):
    running = Running("--jobs", "1", "--max-seconds", "4", "--max-waiting", "2", "--keep-minutes", "0.01")
    try:
        client = Client(running.url)
        with client:
            slow = client.submit(*pair, model="none", solver="iterate", steps=10_000_000)
            assert client.status(slow)["note"].startswith(("loading", "compiling"))  # no worker is ready yet
            while client.status(slow, wait=20)["state"] == "waiting":
                pass
            quick = [client.submit(*pair, model="none") for _ in range(2)]
            assert [client.status(job)["position"] for job in quick] == [1, 2]
            with pytest.raises(ServerError, match="2 jobs are waiting"):
                client.submit(*pair)
            with pytest.raises(ServerError, match="longer than 4 s"):
                client.wait(slow)
            assert client.wait(quick[1])["state"] == "done"
        assert running.process.poll() is None
        assert running.forgets(set())
        assert running.stop() == 0
        assert not list(running.temporary.iterdir())
    finally:
        running.clear()


def test_what_a_killed_server_left_is_deleted_by_the_next(tmp_path, monkeypatch):
    from dada.app import folders

    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    (tmp_path / f"dada-app-{process.pid}-abc").mkdir()
    (tmp_path / f"dada-app-{signal.SIGKILL}").mkdir()  # not of this form
    (tmp_path / "dada-app-1-abc").mkdir()  # of a process that runs
    folders.remove_orphans()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dada-app-1-abc", "dada-app-9"]


@pytest.mark.parametrize(("host", "told"), [("127.0.0.1", "this machine alone"), ("0.0.0.0", "There is no password")])
def test_whoever_opens_it_to_a_network_is_told_what_that_means(host, told):
    desk = Desk(Limits(), 1)
    try:
        with Server((host, 0), desk) as server:
            assert told in " ".join(announcement(server))
            assert server.local == (host == "127.0.0.1")
    finally:
        desk.close()


@pytest.mark.parametrize("options", [{"minutes": 0}, {"megabytes": -1.0}])
def test_a_limit_of_nothing_is_refused(options):
    with pytest.raises(InputError, match="must be positive"):
        Limits(**options)


def test_one_connection_too_many_is_answered():
    desk = Desk(Limits(connections=1), 1)
    with Server(("127.0.0.1", 0), desk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            held = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
            held.request("GET", "/icon.svg")
            assert held.getresponse().read()
            with pytest.raises(ServerError, match="too many connections"):
                Client(server.url).about()
            held.close()
        finally:
            server.shutdown()
            desk.close()


def test_a_port_in_use_is_a_message(server):
    port = str(urlsplit(server.url).port)
    command = [sys.executable, "-m", "dada.cli", "app", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: 127.0.0.1 port {port} cannot be listened at")


def test_the_server_itself_loads_nothing_heavy():
    code = (
        "import sys, dada.cli.app, dada.app.serving, dada.app.client\n"
        "print([name for name in ('torch', 'numba', 'cv2', 'scipy', 'matplotlib', 'rasterio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
