"""Setting up the suite's data: from any index that pip supports, without running downloaded code, and with all
missing parts reported at once."""

import base64
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import threading

import pytest
from etude import package_index, suite_data
from etude.package_index import PackageFile, Settings, Unavailable, fetch, read_settings

NAME = "Some_Flights-0.1.tar.gz"


def sdist(path, marker):
    """Returns a source package whose set-up code writes a file and needs requirements that are missing here."""
    code = f"open({str(marker)!r}, 'w')\nimport a_module_that_nobody_has\n".encode()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("some-flights-0.1/setup.py")
        member.size = len(code)
        archive.addfile(member, io.BytesIO(code))
    return PackageFile("Some_Flights", NAME, hashlib.sha256(path.read_bytes()).hexdigest())


class Index(http.server.ThreadingHTTPServer):
    """Serves pages by path, as (kind, contents), and a status alone for others. Records the requests."""

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = pages
        self.asked = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def host(self):
        return f"127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        pages = self.server.pages.get(self.path, [404])
        page = pages.pop(0) if len(pages) > 1 else pages[0]
        kind, contents = page if isinstance(page, tuple) else ("text/plain", b"")
        self.send_response(page if isinstance(page, int) else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        self.wfile.write(contents)

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower().endswith("_proxy") or name in ("ETUDE_PIP_ARGS", "NETRC"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(package_index, "configuration_files", lambda _: [])


@pytest.fixture
def file(tmp_path):
    return sdist(tmp_path / NAME, tmp_path / "ran")


def serve(*pages):
    index = Index(dict(pages))
    return index


@pytest.mark.parametrize("kind", ["json", "html"])
def test_a_source_package_is_got_and_not_run(kind, file, tmp_path):
    if kind == "json":
        row = {"filename": NAME, "url": f"../../files/{NAME}", "hashes": {"sha256": file.sha256}}
        page = ("application/vnd.pypi.simple.v1+json", json.dumps({"files": [row]}).encode())
    else:
        page = ("text/html", f'<a href="../../files/{NAME}#sha256={file.sha256}">{NAME}</a>'.encode())
    index = serve(("/simple/some-flights/", [page]), (f"/files/{NAME}", [503, ("x/y", (tmp_path / NAME).read_bytes())]))
    to = tmp_path / "to"
    to.mkdir()
    settings = Settings(index_url=f"http://somebody:se%40cret@{index.host}/simple/")
    got = fetch(file, to, settings)
    assert got == to / NAME and got.read_bytes() == (tmp_path / NAME).read_bytes()
    assert not (tmp_path / "ran").exists()
    expected = "Basic " + base64.b64encode(b"somebody:se@cret").decode()
    assert {headers.get("Authorization") for _, headers in index.asked} == {expected}


def test_folders_and_file_indexes(file, tmp_path):
    to = tmp_path / "to"
    (tmp_path / "simple/some-flights").mkdir(parents=True)
    to.mkdir()
    (tmp_path / "simple/some-flights/index.html").write_text(f'<a href="../../{NAME}">x</a>')
    for settings in (Settings(find_links=[str(tmp_path)], no_index=True),
                     Settings(find_links=[str(tmp_path / NAME)], no_index=True),
                     Settings(index_url="file:///nowhere", extra_index_url=[(tmp_path / "simple").as_uri()])):  # fmt: skip
        got = fetch(file, to, settings)
        assert got.read_bytes() == (tmp_path / NAME).read_bytes()
        got.unlink()


def test_what_each_place_lacks_is_said(file, tmp_path):
    other = ("text/html", f'<a href="/{NAME}">x</a>'.encode())
    local = ("text/html", f'<a href="{(tmp_path / NAME).as_uri()}">x</a>'.encode())
    damaged = ("application/vnd.pypi.simple.v1+json", b"[1]")
    index = serve(("/a/some-flights/", [other]), (f"/{NAME}", [("x/y", b"another")]), ("/l/some-flights/", [local]),
                  ("/d/some-flights/", [damaged]))  # fmt: skip
    host = index.host
    urls = [f"http://u:secret@{host}/{name}" for name in ("none", "l", "d")]
    with pytest.raises(Unavailable) as raised:
        fetch(file, tmp_path, Settings(index_url=f"http://{host}/a", extra_index_url=urls, find_links=["/nowhere/at/all"]))
    told = str(raised.value)
    found = hashlib.sha256(b"another").hexdigest()
    assert f"http://{host}/{NAME}: found SHA-256 {found}, expected {file.sha256}" in told
    assert f"http://{host}/none/some-flights/: HTTP Error 404" in told
    assert f"http://{host}/l/some-flights/: no {NAME}" in told
    assert f"http://{host}/d/some-flights/: not a page of a package index" in told
    assert "/nowhere/at/all: " in told and "secret" not in told


def test_settings_are_those_of_pip(monkeypatch, tmp_path):
    monkeypatch.undo()
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    (tmp_path / "xdg/pip").mkdir(parents=True)
    (tmp_path / "xdg/pip/pip.conf").write_text("[global]\nindex-url = http://xdg\nproxy = http://p\ntimeout = soon\n")
    second.write_text("[global]\nextra-index-url =\n  http://a\n  http://b\n[download]\nindex_url = http://download\nno-index = true\n")
    first.write_text("no section\n")
    base = {"XDG_CONFIG_DIRS": str(tmp_path / "none"), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    found = read_settings(base)
    assert (found.proxy, found.timeout, found.no_index) == ("http://p", 15, False)
    found = read_settings(base | {"PIP_CONFIG_FILE": str(second), "PIP_DEFAULT_TIMEOUT": "180", "PIP_NO_INDEX": "0"})
    assert (found.index_url, found.extra_index_url) == ("http://download", ["http://a", "http://b"])
    assert (found.timeout, found.no_index, found.proxy) == (180, False, "")
    given = "--index-url http://given -f wheels --extra-index-url=http://c --no-index --only-binary :all:"
    found = read_settings(base | {"PIP_CONFIG_FILE": str(second), "PIP_INDEX_URL": "http://variable", "ETUDE_PIP_ARGS": given})
    assert (found.index_url, found.find_links, found.no_index) == ("http://given", ["wheels"], True)
    assert found.extra_index_url == ["http://a", "http://b", "http://c"]
    assert read_settings(base | {"PIP_CONFIG_FILE": os.devnull}) == Settings()
    # A damaged one is skipped.
    assert read_settings(base | {"PIP_CONFIG_FILE": str(first)}).no_index is False


def test_all_that_is_missing_is_said_at_once(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    there = suite_data.importlib.util.find_spec
    monkeypatch.setattr(suite_data.importlib.util, "find_spec", lambda name: None if name == "zlib" else there(name))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 1_500_000))
    assert suite_data.main([str(tmp_path / "data")]) == 4
    told = capsys.readouterr().err
    assert "program espeak-ng: apt-get install espeak-ng (for spoken-digits)" in told
    assert "program apt-get: part of Debian" in told and "(for package-texts)" in told
    assert "Python module zlib" in told and "(for mnist-5k, nycflights, caravan, orl-faces, photographs)" in told
    assert f"disk space in {tmp_path / 'data'}: 266 MB needed, 2 MB free" in told
    assert list((tmp_path / "data").iterdir()) == []


def test_what_can_be_made_is_made(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shutil, "which", lambda _: None)

    def gone(_file, _folder):
        raise Unavailable("could not get it")

    monkeypatch.setattr(suite_data, "fetch", gone)
    monkeypatch.setitem(suite_data.SETS, "nycflights", suite_data.DataSet(lambda _, to: (to / "train.txt").touch(), 1))
    (tmp_path / "mnist-5k").mkdir()
    assert suite_data.main([str(tmp_path)]) == 4
    told = capsys.readouterr().err
    assert "mnist-5k: already exists" in told and "espeak-ng" in told and (tmp_path / "nycflights/train.txt").exists()
    (tmp_path / "mnist-5k").rmdir()
    assert suite_data.main([str(tmp_path), "mnist-5k", "nycflights"]) == 4
    told = capsys.readouterr().err
    assert "etude: mnist-5k: could not get it" in told and sorted(os.listdir(tmp_path)) == ["nycflights"]


APT = """#!{python}
# Stands in for apt-get: keeps its options, and has lists of translations.
import pathlib, sys
options = dict(word.split("=", 1) for word in sys.argv if "=" in word)
pathlib.Path({told!r}).write_text(repr(options))
if {fails}:
    print("Reading package lists...")
    print("E: The repository has no Release file.")
    sys.exit(100)
lists = pathlib.Path(options["Dir::State::lists"])
for name, text in {lists!r}.items():
    (lists / name).write_text(text)
print("W: another source failed")
"""
ENTRY = "Package: {name}\nDescription-md5: {md5}\nDescription-{language}: {text}\n\n"


def fake_apt(folder, monkeypatch, lists, fails=False):
    """Puts a program apt-get first in PATH."""
    program = folder / "bin/apt-get"
    program.parent.mkdir()
    program.write_text(APT.format(python=sys.executable, told=str(folder / "told"), lists=lists, fails=fails))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def entries(language, texts):
    return "".join(ENTRY.format(name=name, md5=md5, language=language, text=text) for name, md5, text in texts)


# The hash holds out one of these names.
NAMES = [f"tool-{number}" for number in range(40)]


def test_package_texts_are_those_of_apts_lists(monkeypatch, tmp_path, capsys):
    body = "\n A fast tool\n for text.\n   * lists are left out\n .\n It has two paragraphs."
    english = [(name, f"{number}", f"tool number {number}{body}") for number, name in enumerate(NAMES)]
    english += [("zz-again", "x", "tool number 3"), ("zz-long", "y", "one " * 13)]
    german = [(name, f"{number}", f"Werkzeug Nummer {number}") for number, name in enumerate(NAMES[:39])]
    german += [(NAMES[39], "another text", "Altes Werkzeug"), ("zz-long", "y", "kurz")]
    fake_apt(tmp_path, monkeypatch, {
        "a_dists_b_main_i18n_Translation-en": entries("en", english),
        "a_dists_b_main_i18n_Translation-de": entries("de", german),
        "c_dists_d_main_i18n_Translation-en": entries("en", [("other", "z", "of a source without German")]),
    })  # fmt: skip
    monkeypatch.chdir(tmp_path)  # apt would look for relative folders elsewhere
    data = tmp_path / "data"
    assert suite_data.main(["data", "package-texts"]) == 0
    told = capsys.readouterr().err
    folder = data / "package-texts"
    lines = {path.name: path.read_text().splitlines() for path in folder.iterdir()}
    held_out = [name for name in NAMES if suite_data.held_out(name)]
    assert 0 < len(held_out) < 10
    assert len(lines["test.en"]) == len(lines["test.de"]) == len([name for name in held_out if name != NAMES[39]])
    assert len(lines["train.en"]) == len(lines["train.de"]) == 39 - len(lines["test.en"])
    for source, target in zip(lines["train.en"], lines["train.de"]):
        assert source.replace("tool number", "Werkzeug Nummer") == target
    assert lines["train.txt"][:4] == ["tool number 0", "A fast tool for text.", "It has two paragraphs.", ""]
    assert len(lines["train.title.txt"]) + len(lines["test.title.txt"]) == 40
    assert set(lines["train.article.txt"]) == {"A fast tool for text. It has two paragraphs."}
    manifest = "".join(line + "\n" for line in lines["MANIFEST"])
    assert manifest in told and f"train.en  {len(lines['train.en'])} lines" in manifest
    # apt works in separate folders, which are removed afterwards.
    options = eval((tmp_path / "told").read_text())
    assert options["Acquire::Languages"] == "en,de"
    for name in ("Dir::State::lists", "Dir::Cache"):
        assert options[name].startswith(str(data)) and not os.path.exists(options[name])


def test_apt_that_gets_nothing(monkeypatch, tmp_path, capsys):
    fake_apt(tmp_path, monkeypatch, {}, fails=True)
    assert suite_data.main([str(tmp_path / "data"), "package-texts"]) == 4
    told = capsys.readouterr().err
    assert "package-texts: apt-get update got no German package descriptions: E: The repository has no Release file." in told
    assert list((tmp_path / "data").iterdir()) == []


def test_nothing_but_the_standard_library_is_needed(tmp_path):
    package = pathlib.Path(suite_data.__file__).parents[1]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys; sys.path.insert(0, sys.argv[1]); import etude.suite_data as s; "
                           "sys.exit(s.main([sys.argv[2], 'mnist-5k']))", package, tmp_path],
                          capture_output=True, text=True, env={"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull})  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert "no index to search: no-index is set and find-links is not" in done.stderr
