"""The examples of docs/python.md give the results shown there."""

import doctest
import os
import pathlib
import re
import shutil

from conftest import DEVICE, HOST, TOOL

import etude

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text()


def test_the_examples_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_PROGRAM", str(TOOL))
    os.mkdir("job")
    shutil.copy(HOST, "job/host.0.json.gz")
    shutil.copy(DEVICE, "job/device.0.json.gz")
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE, re.S))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "python.md", "docs/python.md", 0)
    said = []
    result = doctest.DocTestRunner().run(parsed, out=said.append)
    assert result.failed == 0 and result.attempted > 20, "".join(said)


def test_what_the_page_names_is_there():
    for name in re.findall(r"`etude\.(\w+)", PAGE):
        assert hasattr(etude, name), name
    columns = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.M)
    named = {name for cell in columns for name in re.findall(r"`(\w+)`", cell)}
    nodes = set(etude.open(HOST).nodes.names)
    assert nodes <= named, nodes - named


def test_every_function_is_on_the_page():
    functions = [name for name in dir(etude) if isinstance(getattr(etude, name), type(etude.open))]
    assert {"open", "stats"} <= set(functions)
    for name in [*functions, *sorted(etude._COMMANDS - {"Answer"})]:
        assert re.search(rf"`(etude\.)?{name}[`(]", PAGE), name
