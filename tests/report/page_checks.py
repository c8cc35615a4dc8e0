#!/usr/bin/env python3
"""Tests of the page that `etude report` writes, from outside: its parts as an HTML parser reads them, and its
behaviour in headless Chromium.

    page_checks.py --bin build/bin            tests without a browser
    page_checks.py --bin build/bin --browser  in Chromium; exit code 77 (skipped) without it

The traces made here contain names that would break a page that inserts them unescaped.
"""

import argparse
import base64
import hashlib
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
BIN = pathlib.Path("build/bin")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

HOSTILE = [
    "</script><script>document.title='hacked'</script>",
    "<img src=x onerror=\"document.title='hacked'\">",
    "\"'><svg onload=document.title='hacked'>",
    "</title></style></textarea><h1>hacked",
    "<!--", "]]>", "&lt;b&gt;", "{{constructor.constructor('document.title=1')()}}",
    "\u202egpj.\u202cexe", "\u2066isolate", "zero\u200bwidth", "nul\x00bell\x07esc\x1b[31m", "line\nfeed\ttab\r",
    "\u2028separator\u2029", "__proto__", "constructor", "n" * 100_000, "\U0001f680" * 300, "%s%n{}{0}",
]


def event(name, begin, length, **more):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": begin, "dur": length, "args": {}, **more}


def write_trace(path, names, each=1000):
    """Writes an operator, a kernel and a label with each name, which share `each` microseconds."""
    events = [event("ProfilerStep#1", 0, each * len(names), cat="user_annotation")]
    for i, name in enumerate(names):
        events.append(event(name, each * i + 10, each // 2))
        events.append(event(name, each * i + each * 6 // 10, each * 3 // 10, cat="kernel", pid=0, tid=7,
                            args={"device": 0, "stream": 7, "correlation": i}))
        events.append(event(name, each * i, each - 10, cat="user_annotation"))
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))


class Outline(html.parser.HTMLParser):
    """Collects tags, attributes, and the texts of scripts, styles and table cells."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.texts = {"script": [], "style": [], "td": [], "h1": []}
        self.inside = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in self.texts:
            self.texts[tag].append("")
            self.inside = tag

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.texts[self.inside][-1] += data

    def of(self, tag):
        return [attrs for found, attrs in self.tags if found == tag]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.tmp.name)
        write_trace(cls.folder / "hostile.json", HOSTILE)
        cls.page, cls.data = cls.report("hostile", HOSTILE[1])

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    @classmethod
    def report(cls, name, title):
        """Returns the page for NAME.json, and the output of --json."""
        out = cls.folder / f"{name}.html"
        done = subprocess.run(
            [BIN / "etude", "report", "-q", cls.folder / f"{name}.json", "-o", out, "--title", title, "--json"],
            check=True, stdout=subprocess.PIPE)
        return out, json.loads(done.stdout)


    @classmethod
    def certify(cls, *texts):
        """Returns the page of a certificate with these texts, and that of a comparison with another certificate."""
        certificate = json.loads((DATA / "certificate.json").read_text())
        certificate["benchmark"]["name"] = texts[0]
        certificate["comparison"]["notes"] = list(texts)
        certificate["comparison"]["command"] = list(texts)
        certificate["comparison"]["machine"]["cpu"] = texts[0]
        certificate["comparison"]["replay"]["skipped"] = [{"op": text, "reason": text, "count": 1} for text in texts]
        path = cls.folder / "certificate.json"
        path.write_text(json.dumps(certificate))
        pages = []
        for others in ([], [DATA / "certificate_again.json"]):
            pages.append(cls.folder / f"certificate{len(others)}.html")
            line = [BIN / "etude", "compare", "-q", "--certificate", path, *others, "-o", pages[-1]]
            done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            assert done.returncode in (0, 1), done.stderr
        return pages


class PageTest(Case):
    def setUp(self):
        self.text = self.page.read_text()
        self.outline = Outline(self.text)

    def script(self, name):
        scripts = self.outline.of("script")
        at = next(i for i, attrs in enumerate(scripts) if attrs.get("id") == name)
        return json.loads(self.outline.texts["script"][at])

    def test_only_its_own_tags(self):
        write_trace(self.folder / "tame.json", [f"name{i}" for i in range(len(HOSTILE))])
        tame, _ = self.report("tame", "title")
        wanted = sorted({tag for tag, _ in Outline(tame.read_text()).tags})
        self.assertEqual(wanted, sorted({tag for tag, _ in self.outline.tags}))
        self.assertFalse({"img", "svg", "iframe", "link", "object", "base", "form"} & set(wanted))

    def test_certificates_are_text(self):
        tame = [Outline(page.read_text()).tags for page in self.certify(*map(str, range(len(HOSTILE))))]
        hostile = [Outline(page.read_text()).tags for page in self.certify(*HOSTILE)]
        for one, other in zip(tame, hostile):
            self.assertEqual([tag for tag, _ in one], [tag for tag, _ in other])

    def test_nothing_is_asked_for_and_nothing_runs_from_attributes(self):
        for tag, attrs in self.outline.tags:
            for name in attrs:
                self.assertFalse(name.startswith("on"), (tag, name))
                self.assertNotIn(name, ("src", "srcset", "style", "action", "data", "poster"), tag)
            self.assertTrue(attrs.get("href", "#").startswith("#"), attrs)
        for style in self.outline.texts["style"]:
            self.assertNotRegex(style, r"url\(|@import|http")

    def test_policy_names_what_is_there(self):
        policy = next(attrs["content"] for attrs in self.outline.of("meta")
                      if attrs.get("http-equiv") == "Content-Security-Policy")
        parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        self.assertEqual(parts["default-src"], "'none'")
        self.assertNotIn("unsafe", policy)

        def digest(text):
            return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

        run = [text for attrs, text in zip(self.outline.of("script"), self.outline.texts["script"])
               if attrs.get("type") != "application/json"]
        self.assertTrue(run)
        self.assertEqual(sorted(parts["script-src"].split()), sorted(map(digest, run)))
        self.assertEqual([parts["style-src"]], list(map(digest, self.outline.texts["style"])))

    def test_verdict_comes_first(self):
        sections = [attrs.get("id") for attrs in self.outline.of("section")]
        self.assertEqual(sections[:3], ["verdict", "overview", "steps"])

    def test_download_is_what_json_says_and_names_are_whole(self):
        data = self.script("etude-data")
        self.assertEqual(data, self.data)
        self.assertEqual(data["format"], "etude-report")
        ops = next(t for s in data["sections"] if s["key"] == "operators" for t in s["tables"] if t["key"] == "ops")
        at = [column["key"] for column in ops["columns"]].index("name")
        self.assertLessEqual(set(HOSTILE), {row[at] for row in ops["rows"]})

    def test_tables_are_there_without_scripts_and_marks_are_seen(self):
        cells = self.outline.texts["td"]
        self.assertGreater(len(cells), 50)
        for cell in cells:
            self.assertNotRegex(cell, "[\x00-\x08\u202a-\u202e\u2066-\u2069]")
            self.assertLess(len(cell), 1000)

    def test_timeline_holds_every_event(self):
        timeline = self.script("etude-timeline")
        rows = [row for track in timeline["tracks"] for lane in track["lanes"] for row in lane["rows"]]
        self.assertEqual(sum(row["count"] for row in rows), 3 * len(HOSTILE) + 1)

    def test_same_input_same_bytes(self):
        before = self.page.read_bytes()
        again, _ = self.report("hostile", HOSTILE[1])
        self.assertEqual(before, again.read_bytes())


class BrowserTest(Case):
    def browse(self, page, *flags):
        """Returns the page's state in Chromium and its console output."""
        done = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={self.folder}/profile", "--window-size=1300,2000", *flags, page.as_uri()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 0)
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
        return done.stdout.decode(errors="replace"), said

    def test_runs_without_complaint_and_shows_names_as_text(self):
        dom, said = self.browse(self.page, "--dump-dom")
        self.assertEqual(said, [])
        outline = Outline(dom)
        self.assertEqual(outline.texts["h1"][0], HOSTILE[1])
        self.assertNotIn("<title>hacked", dom)
        self.assertFalse({"img", "svg", "iframe"} & {tag for tag, _ in outline.tags})
        self.assertRegex(dom, r"Timeline of %d events" % (3 * len(HOSTILE) + 1))
        self.assertIn("Download data", dom)
        self.assertIn("Show more", dom)
        cells = "\n".join(outline.texts["td"])
        self.assertIn(HOSTILE[0], cells)
        self.assertIn("line\\u{a}feed\\u{9}tab\\u{d}", cells)
        self.assertIn("nul\\u{0}bell", cells)
        charts = [attrs for attrs in outline.of("div") if "data-chart" in attrs]
        if "no chart library" not in dom:
            self.assertGreater(len(charts), 4)
            self.assertGreaterEqual(len(outline.of("canvas")), len(charts) + 1)

    def test_certificates_are_drawn(self):
        for page in self.certify(*HOSTILE):
            dom, said = self.browse(page, "--dump-dom")
            self.assertEqual(said, [])
            outline = Outline(dom)
            self.assertNotIn("<title>hacked", dom)
            charts = [attrs for attrs in outline.of("div") if "data-chart" in attrs]
            if "no chart library" not in dom:
                self.assertGreaterEqual(len(charts), 3)
                self.assertEqual(len(outline.of("canvas")), len(charts))

    def evaluate(self, page, script):
        """Returns the value of a function body at the end of the page, without the policy that forbids it to run."""
        text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(), count=1)
        at = text.rindex("</body>")
        probe = self.folder / "probe.html"
        probe.write_text(
            text[:at] + "<script>document.body.dataset.answer = JSON.stringify((() => {" + script + "})())</script>" + text[at:])
        dom, said = self.browse(probe, "--dump-dom", "--virtual-time-budget=1000")
        self.assertEqual(said, [])
        return json.loads(Outline(dom).of("body")[0]["data-answer"])

    def test_names_of_bars_keep_what_tells_them_apart(self):
        kernel = "void at::native::kernel<4, " + "at::native::" * 30 + "functor<float>, Array<char*, 2> >(int)"
        path = "/data/" + "folder/" * 30 + "trace.json"
        one, function, file, tip = self.evaluate(self.page, f'''
            const kernel = {json.dumps(kernel)}, path = {json.dumps(path)};
            return [labelText("aten::mm", 20), labelText(kernel, 36), labelText(path, 36), wrap(kernel, 50)];''')
        self.assertEqual(one, "aten::mm")
        for text in (function, file):
            lines = text.split("\n")
            self.assertEqual(len(lines), 2)
            self.assertLessEqual(max(map(len, lines)), 36)
        self.assertEqual(function.replace("\n", ""), "kernel<4, functor<float>, Array<char*, 2> >")
        self.assertTrue(file.startswith("/data/") and file.endswith("trace.json"), file)
        self.assertIn("…", file)
        self.assertEqual(tip.replace("\n", ""), kernel)
        self.assertLessEqual(max(map(len, tip.split("\n"))), 50)

    def test_figures_are_written_alike_with_and_without_scripts(self):
        write_trace(self.folder / "slow.json", [f"name{i}" for i in range(20)], each=4_321_000)
        page, _ = self.report("slow", "slow")
        dom, _ = self.browse(page, "--dump-dom")
        plain, scripted = (set(Outline(text).texts["td"]) for text in (page.read_text(), dom))
        self.assertLessEqual(plain, scripted)
        self.assertTrue(any(text.endswith(" s") for text in plain))

    def test_paper_has_everything_unfolded_but_licences(self):
        on_screen, on_paper, after = self.evaluate(self.page, '''
            const closed = () => Array.from(document.querySelectorAll("details:not([open])"), (one) => one.className);
            const seen = [closed()];
            for (const name of ["beforeprint", "afterprint"]) {
              window.dispatchEvent(new Event(name));
              seen.push(closed());
            }
            return seen;''')
        self.assertIn("method", on_screen)
        self.assertLessEqual(set(on_paper), {"licence"})
        self.assertEqual(on_screen, after)

    def test_lanes_fold_by_key(self):
        shown, folded = self.evaluate(self.page, '''
            const heights = [];
            const timeline = new Timeline(document.createElement("div"), readData("etude-timeline"));
            timeline.stepInRow(1);
            for (let i = 0; i < 2; ++i) {
              heights.push(timeline.contentHeight);
              timeline.onKey(new KeyboardEvent("keydown", {key: "Enter"}));
            }
            return heights;''')
        self.assertLess(folded, shown)

    def test_draws_its_timeline_and_prints(self):
        # Chromium ends without a file if the page crashes it.
        for flag, name in (("--screenshot", "page.png"), ("--print-to-pdf", "page.pdf")):
            out = self.folder / name
            self.browse(self.page, f"{flag}={out}")
            self.assertGreater(out.stat().st_size, 10_000)

    def test_empty_trace(self):
        (self.folder / "empty.json").write_text('{"schemaVersion":1,"traceEvents":[]}')
        page, _ = self.report("empty", "empty")
        dom, said = self.browse(page, "--dump-dom")
        self.assertEqual(said, [])
        self.assertIn("no timeline, because no node has a start", dom)


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--browser", action="store_true")
    args = parser.parse_args()
    BIN = pathlib.Path(args.bin).resolve()
    if args.browser and CHROMIUM is None:
        print("skipped: no chromium on the path (Debian: apt-get install chromium)")
        return SKIPPED
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(BrowserTest if args.browser else PageTest)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
