"""How fast `dada app` is there, and what many requests do to it.

    python benchmarks/app.py

A server is started as a user starts it. Then: seconds until the page answers, seconds from the request of the default
example to its first picture, and 200 requests of 8 clients, 20 of them malformed, with the memory of all processes of
the server after each quarter and the files that are left.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

from dada.app.client import Client, ServerError
from dada.errors import InputError
from dada.io import write_image
from dada.scene import render

RAW = ("no form", "cut off", "too large", "nowhere", "length")  # what no client of ours would send
MALFORMED = (*RAW, "no guide", "truncated", "swapped", "text", "field")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--malformed", type=int, default=20)
    parser.add_argument("--clients", type=int, default=8)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "dada.cli", "app", "--port", "0"]
        environment = os.environ | {"TMPDIR": folder}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            urlopen(url).read()
            print(f"page after {time.perf_counter() - begin:.2f} s, {processor(server.pid):.2f} s of the processor")
            first_picture(url, server.pid, "at once")
            first_picture(url, server.pid, "then")
            report(url, server.pid, Path(folder), wanted.requests, wanted.malformed, wanted.clients)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
        print(f"files left after the end: {len(list(Path(folder).iterdir()))}")


def first_picture(url: str, process: int, when: str) -> None:
    """Seconds from the request of the default example until its layers are there."""
    with Client(url) as client:
        begin, before = time.perf_counter(), processor(process)
        job = client.submit(example="room")
        client.wait(job)
        for layer in ("guide", "source", "bicubic", "result"):
            urlopen(f"{url}/api/jobs/{job}/layers/{layer}").read()
        spent, used = time.perf_counter() - begin, processor(process) - before
        print(f"first picture of the room, asked for {when}: {spent:.2f} s, {used:.2f} s of the processor")


def report(url: str, process: int, folder: Path, requests: int, malformed: int, clients: int) -> None:
    """Send requests in four parts; print what was answered, the memory and the files after each."""
    for part in range(4):
        begin = time.perf_counter()
        answers = load(url, requests // 4, malformed // 4, clients)
        time.sleep(1)
        spent, left = time.perf_counter() - begin - 1, len(list(folder.glob("dada-app-*/jobs/*")))
        told = ", ".join(f"{count} {what}" for what, count in sorted(answers.items()))
        print(f"part {part + 1}: {told}; {spent:.1f} s, {memory(process) / 1e6:.0f} MB, {left} folders left")


def load(url: str, requests: int, malformed: int, clients: int) -> Counter[str]:
    """Send requests from several clients at a time; return how often each kind of answer came.

    Args:
        url: of the server.
        requests: in all.
        malformed: of them; each is expected to be refused in words, by one that is answered "refused".
        clients: threads that send.
    """
    work: SimpleQueue[str] = SimpleQueue()
    every = max(1, requests // max(malformed, 1))
    bad = 0
    for number in range(requests):
        if number % every == 0 and bad < malformed:
            work.put(MALFORMED[bad % len(MALFORMED)])
            bad += 1
        else:
            work.put("good")
    answers: Counter[str] = Counter()
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as name:
        files = write_files(Path(name))

        def send() -> None:
            while True:
                try:
                    kind = work.get_nowait()
                except Empty:
                    return
                answer = one(url, kind, files)
                with lock:
                    answers[answer] += 1

        threads = [threading.Thread(target=send) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return answers


def write_files(folder: Path) -> dict[str, Path]:
    """A small pair, and files that are none."""
    scene = render(48, 64)
    depth = np.rint(1000 * scene.depth.reshape(6, 8, 8, 8).mean(axis=(1, 3))).astype(np.uint16)
    files = {name: folder / f"{name}.png" for name in ("depth", "rgb", "truncated", "text")}
    write_image(files["depth"], depth)
    write_image(files["rgb"], scene.guide)
    files["truncated"].write_bytes(files["depth"].read_bytes()[:-20])
    files["text"].write_text("not an image")
    return files


def one(url: str, kind: str, files: dict[str, Path]) -> str:
    """Send one request; "done", "refused", or what went wrong."""
    try:
        if kind in RAW:
            return raw(url, kind)
        with Client(url) as client:
            source, guide = files["depth"], files["rgb"]
            fields: dict[str, object] = {"model": "none"}
            if kind == "swapped":
                source, guide = guide, source
            elif kind in ("truncated", "text"):
                source = files[kind]
            elif kind == "field":
                fields["colour"] = "red"
            if kind == "no guide":
                client.submit(source)
            job = client.submit(source, guide, **fields)
            client.wait(job)
            client.download(job, os.devnull)
            return "done"
    except InputError:
        return "refused" if kind != "good" else "wrongly refused"
    except (ServerError, OSError) as error:
        return f"{kind}: {error}"


def raw(url: str, kind: str) -> str:
    """A request that no client of ours would send."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    headers = {"Content-Type": "multipart/form-data; boundary=XX"}
    body = b'--XX\r\nContent-Disposition: form-data; name="source"; filename="a.png"\r\n\r\nabc'
    if kind == "no form":
        headers = {"Content-Type": "application/json"}
    elif kind == "too large":
        headers["Content-Length"], body = str(10**12), b""
    elif kind == "length":
        headers["Content-Length"], body = "many", b""
    try:
        connection.request("POST", "/api/nowhere" if kind == "nowhere" else "/api/jobs", body, headers)
        answer = connection.getresponse()
        answer.read()
        return "refused" if 400 <= answer.status < 500 else f"{kind}: {answer.status}"
    finally:
        connection.close()


def family(process: int) -> set[int]:
    """A process and its children, of Linux."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def memory(process: int) -> int:
    """Bytes of memory that a process and its children use."""
    pages = 0
    for member in family(process):
        with suppress(OSError):
            pages += int(Path(f"/proc/{member}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def processor(process: int) -> float:
    """Seconds of the processor that a process and its children have used."""
    ticks = 0
    for member in family(process):
        with suppress(OSError):
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
