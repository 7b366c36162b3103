#!/usr/bin/env python3
"""Opens HTML reports in headless Chromium and compares its drawing with report.json.

usage: browser_test.py HALFSTEP [--screenshots FOLDER]

A training run that skips steps, a comparison, a benchmark, an evaluation and an explanation are made
in a temporary folder. Each page is opened at the width of a desktop and of a phone, light and dark,
with and without JavaScript. Prints "skipped: ..." where Chromium or Selenium is not installed.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    # Debian's package is for Debian's interpreter.
    DEBIAN = "/usr/bin/python3"
    if os.path.exists(DEBIAN) and os.path.realpath(sys.executable) != os.path.realpath(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, "-B", *sys.argv])
    webdriver = None

CONFIG = """
version: 1
name: {name}
seed: 7
data: {{name: synthetic_digits, train_samples: 512, test_samples: 128, validation_split: 0.25}}
model:
  input: [784]
  layers:
    - {{type: dense, units: 16, activation: relu, name: hidden}}
    - {{type: dropout, rate: 0.25}}
    - {{type: dense, units: 10, name: logits}}
    - {{type: softmax, dtype: float32}}
precision: {precision}
loss: sparse_categorical_crossentropy
optimizer: {{type: adam, learning_rate: 1e-3}}
training: {{epochs: 3, batch_size: 32}}
report: {{numerics: {{mode: sample, every: 8}}}}
"""

HOSTILE = "</script><script>window.injected=1</script><img src=x onerror=window.injected=2>\"'<!--"

SIZES = {"desktop": (1280, 900, False), "phone": (390, 844, True)}

# The data of a chart, as plain numbers.
READ_CHARTS = """
const plain = (v) => (Number.isFinite(v) ? v : null);
return Array.from(document.querySelectorAll("canvas")).map((canvas) => {
  const chart = Chart.getChart(canvas), box = canvas.getBoundingClientRect();
  const scale = (s) => ({type: s.type, min: s.min, max: s.max, ticks: s.ticks.map((t) => t.value)});
  return {
    id: canvas.id, left: box.left, right: box.right, height: box.height,
    x: scale(chart.scales.x), y: scale(chart.scales.y),
    labels: chart.data.labels,
    datasets: chart.data.datasets.map((d, i) => ({
      label: d.label ?? null, band: d.band ?? false,
      data: d.data.map((p) => (p !== null && typeof p === "object" && !Array.isArray(p)
        ? [plain(p.x), plain(p.y)] : p)),
      drawn: chart.getDatasetMeta(i).data.map((e) => [plain(e.x), plain(e.y)]),
    })),
  };
});
"""

failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print(f"FAILED: {message}", file=sys.stderr)


def same(a, b, message):
    """Equal numbers, nulls and lists, except in the last digits."""
    def close(x, y):
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            return len(x) == len(y) and all(map(close, x, y))
        if isinstance(x, (int, float)) and isinstance(y, (int, float)):
            return abs(x - y) <= 1e-9 * max(1, abs(x), abs(y))
        return x == y
    check(close(a, b), f"{message}: {str(a)[:200]} is not {str(b)[:200]}")


class Reports:
    """Reports made by the program in a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def run(self, *words, codes=(0,)):
        end = subprocess.run([self.program, *map(str, words)], cwd=self.folder, text=True,
                             capture_output=True, check=False)
        if end.returncode not in codes:
            raise RuntimeError(f"{words}: ended with {end.returncode}: {end.stderr}")
        return end.stdout

    def config(self, name, precision):
        (self.folder / f"{name}.yaml").write_text(CONFIG.format(name=name, precision=precision))
        return f"{name}.yaml"

    def export(self, report):
        """The page of a report, and the report."""
        page = self.folder / (str(report).replace("/", "_").replace(".json", "") + ".html")
        self.run("report", "export", report, "--format", "html", "-o", page)
        path = self.folder / report
        path = path / "report.json" if path.is_dir() else path
        return page, json.loads(path.read_text())


class Browser:
    def __init__(self, chromium, driver, profile):
        options = Options()
        options.binary_location = chromium
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
                     f"--user-data-dir={profile}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(driver), options=options)

    def command(self, name, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def open(self, page, size, dark=False, scripts=True):
        width, height, mobile = SIZES[size]
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=mobile)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.driver.get_log("browser")
        self.driver.get(page.as_uri())

    def ask(self, script):
        return self.driver.execute_script(script)

    def rows(self):
        """Cells of every table of the page."""
        return self.ask("""return Array.from(document.querySelectorAll("table")).map((table) =>
            Array.from(table.rows).map((row) => Array.from(row.cells).map((c) => c.textContent)))""")

    def charts(self):
        return {chart["id"]: chart for chart in self.ask(READ_CHARTS)}

    def save(self, folder, name):
        if not folder:
            return
        # Details stay closed, as a reader finds them.
        height = self.ask("return document.documentElement.scrollHeight")
        width = self.ask("return window.innerWidth")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=min(height, 8000),
                     deviceScaleFactor=1, mobile=False)
        self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))


def check_frame(browser, name, size):
    """Checks of every page: no error, no request, no sideways scrolling, charts inside."""
    where = f"{name}, {size}"
    errors = [e["message"] for e in browser.driver.get_log("browser") if e["level"] == "SEVERE"]
    check(not errors, f"{where}: the console says {errors}")
    requests = browser.ask("return performance.getEntriesByType('resource').map((e) => e.name)")
    check(not requests, f"{where}: fetched {requests}")
    width = browser.ask("return [document.documentElement.scrollWidth, window.innerWidth]")
    check(width[0] <= width[1], f"{where}: {width[0]} px wide on a screen of {width[1]}")
    check(browser.ask("return window.injected") is None, f"{where}: a text became a script")
    charts = browser.charts()
    for chart in charts.values():
        check(chart["left"] >= 0 and chart["right"] <= width[1] and chart["height"] >= 60,
              f"{where}: {chart['id']} from {chart['left']} to {chart['right']}")
        points = [p for d in chart["datasets"] for p in d["drawn"]]
        check(points, f"{where}: {chart['id']} draws nothing")
    return charts


def only(chart, label):
    found = [d for d in chart["datasets"] if d["label"] == label]
    check(len(found) == 1, f"{chart['id']}: {len(found)} lines named {label}")
    return found[0] if found else {"data": [], "drawn": []}


def check_range(chart, axis, values):
    values = [v for v in values if v is not None]
    scale = chart[axis]
    check(scale["min"] <= min(values) and scale["max"] >= max(values),
          f"{chart['id']}: the {axis} axis from {scale['min']} to {scale['max']} leaves out values "
          f"from {min(values)} to {max(values)}")
    check(len(scale["ticks"]) >= 2, f"{chart['id']}: {len(scale['ticks'])} ticks on {axis}")


def check_train(browser, report, charts):
    steps, history = report["step_history"], report["history"]
    ends = itertools.accumulate(history["steps"])
    for chart, name in ((charts["loss"], "loss"), (charts["metric-accuracy"], "accuracy")):
        same(only(chart, "training")["data"], [list(p) for p in zip(steps["step"], steps[name])],
             f"{name} by step")
        validation = only(chart, "validation, after each epoch")["data"]
        same([y for _, y in validation], history["val_" + name], f"val_{name}")
        check_range(chart, "y", steps[name] + history["val_" + name])
        check_range(chart, "x", steps["step"])
    same([x for x, _ in validation], list(ends), "ends of the epochs")

    scale = report["loss_scale"]
    check(len(scale["skips"]) >= 5, f"the run skipped only {len(scale['skips'])} steps")
    want = [[0, scale["initial"]]]
    want += [[e["ordinal"] + 1, e["to"]] for e in scale["events"]]
    want += [[report["steps"]["ordinal"], scale["final"]]]
    chart = charts["loss-scale"]
    same(only(chart, "loss scale")["data"], want, "loss scale by step")
    marks = only(chart, "skipped step")["data"]
    same([m[0] for m in marks], [s["ordinal"] + 1 for s in scale["skips"]], "skipped steps")
    before = {e["attempt"]: e["from"] for e in scale["events"]}
    same([m[1] for m in marks], [before[s["attempt"]] for s in scale["skips"]], "scale at the skips")
    check(chart["y"]["type"] == "logarithmic", f"the loss scale is on a {chart['y']['type']} axis")
    check(all(tick > 0 and tick == 2.0 ** round(math.log2(tick))
              for tick in chart["y"]["ticks"]), f"ticks of the loss scale: {chart['y']['ticks']}")
    check_range(chart, "y", [y for _, y in want])
    # A larger scale is drawn higher.
    drawn = only(chart, "loss scale")["drawn"]
    check(drawn[0][1] < drawn[-1][1], "the falling scale does not fall in the picture")

    histogram = report["step_time"]["histogram"]
    bars = only(charts["step-times"], "steps")["data"]
    same([y for _, y in bars], histogram["counts"] + [0], "histogram of step times")
    same([bars[0][0], bars[-1][0]], [histogram["from"], histogram["to"]], "ends of the histogram")

    tables = browser.rows()
    epochs = [t for t in tables if t[0][0] == "epoch"][0]
    check([row[0] for row in epochs[1:]] == [str(e) for e in history["epoch"]], "rows of the epochs")
    matrix = [t for t in tables if t[0][0].startswith("label")][0]
    same([[int(c) for c in row[1:]] for row in matrix[1:]], report["test_classes"]["confusion"],
         "confusion matrix")
    check(sum(map(sum, report["test_classes"]["confusion"])) == 128, "the matrix counts the test split")
    tensors = [t for t in tables if t[0][0] == "tensor"][0]
    check(len(tensors) == 1 + len(report["numerics"]["tensors"]), "rows of the numerics")
    ops = browser.ask("""return Array.from(document.querySelectorAll(".ops .op")).map(
        (op) => [op.className, op.title, getComputedStyle(op).backgroundColor])""")
    named = {"float32": "rgb(215, 222, 232)", "float16": "rgb(255, 217, 184)"}
    for dtype, paint in named.items():
        chips = [op for op in ops if op[0] == f"op {dtype}"]
        check(chips and all(chip[2] == paint for chip in chips), f"{dtype} is not painted {paint}")
        check(all("why: " in chip[1] for chip in chips), f"an op in {dtype} without a reason")
    for op in report["precision"]["ops"]:
        check(any(op["reason"] in chip[1] and op["compute_dtype"] in chip[1] for chip in ops),
              f"{op['name']} is on no chip with its reason")
    text = browser.ask("return document.body.innerText")
    check(" ".join(report["run"]["command"][1:3]) in text, "the command is not on the page")
    check(report["context"]["cpu"]["model"] in text, "the processor is not on the page")


def check_compare(browser, report, charts):
    policies = [p["policy"] for p in report["policies"]]
    speedup = {p["policy"]: p["speedup"] for p in report["policies"] if p["speedup"]}
    chart = charts["speedup"]
    check(chart["labels"] == list(speedup), f"rows of the speed-up: {chart['labels']}")
    same(chart["datasets"][0]["data"], [s["ratio_of_medians"] for s in speedup.values()], "speed-ups")
    same(chart["datasets"][1]["data"], [s["ci95"] for s in speedup.values()], "their intervals")
    check_range(chart, "x", [1] + [x for s in speedup.values() for x in s["ci95"]])
    delta = {p["policy"]: p["accuracy_delta"] for p in report["policies"] if p["accuracy_delta"]}
    chart = charts["accuracy-delta"]
    same(chart["datasets"][0]["data"], [100 * d["mean"] for d in delta.values()], "differences")
    same(chart["datasets"][1]["data"], [[100 * x for x in d["ci95"]] for d in delta.values()],
         "intervals of the differences")
    margin = 100 * report["margin"]
    check_range(chart, "x", [-margin, margin] + [100 * x for d in delta.values() for x in d["ci95"]])
    for policy in policies:
        runs = [r for r in report["runs"] if r["policy"] == policy]
        check(len(runs) == len(report["seeds"]), f"{len(runs)} runs of {policy}")
        losses = [r["step_history"]["loss"] for r in runs]
        want = [[x, sum(ys) / len(ys)] for x, *ys in zip(runs[0]["step_history"]["step"], *losses)]
        same(only(charts["loss"], policy)["data"], want, f"mean loss of {policy}")
        datasets = charts["loss"]["datasets"]
        at = [d["label"] for d in datasets].index(policy)
        same([y for _, y in datasets[at - 2]["data"]], [min(ys) for ys in zip(*losses)],
             f"least loss of {policy}")
        same([y for _, y in datasets[at - 1]["data"]], [max(ys) for ys in zip(*losses)],
             f"largest loss of {policy}")
    check_range(charts["loss"], "y", [y for r in report["runs"] for y in r["step_history"]["loss"]])
    scaled = [d["label"] for d in charts["loss-scale"]["datasets"] if not d["band"]]
    check(scaled == ["mixed_float16"], f"loss scales of {scaled}")
    table = [t for t in browser.rows() if t[0][0] == "policy"][0]
    check([row[0] for row in table[1:]] == policies, f"rows of the table: {table}")
    advice = browser.ask("return document.querySelector('.advice')?.textContent ?? ''")
    check(advice.startswith("use ") and any(p in advice for p in policies), f"advice: '{advice}'")


def check_bench(browser, report, charts):
    times = [p["step_time"] for p in report["policies"]]
    same(charts["step-time"]["datasets"][0]["data"], [t["median"] for t in times], "medians")
    same(charts["step-time"]["datasets"][1]["data"], [[t["p05"], t["p95"]] for t in times],
         "percentiles")
    for policy in report["policies"]:
        line = only(charts["step-times"], policy["policy"])
        same([y for _, y in line["data"]], policy["step_time"]["histogram"]["counts"] + [0],
             f"histogram of {policy['policy']}")
    by_type = report["profile"]["by_type"][:12]
    same(charts["profile-0-type"]["datasets"][0]["data"], [row["ms"] for row in by_type], "profile")


def check_eval(browser, report, charts):
    check(not charts, f"charts of an evaluation: {list(charts)}")
    matrix = [t for t in browser.rows() if t[0][0].startswith("label")][0]
    same([[int(c) for c in row[1:]] for row in matrix[1:]], report["classes"]["confusion"],
         "confusion matrix")


def check_explain(browser, report, charts):
    check(not charts, f"charts of an explanation: {list(charts)}")
    table = [t for t in browser.rows() if t[0][0] == "op"][0]
    check([row[0] for row in table[1:]] == [op["name"] for op in report["ops"]], "ops of the table")
    check([row[5] for row in table[1:]] == [op["compute_dtype"] for op in report["ops"]],
          "dtypes of the table")


def check_look(browser, page):
    """Dark and light differ, also in the charts; without JavaScript the tables stay."""
    grounds, inks = [], []
    for dark in (False, True):
        browser.open(page, "desktop", dark=dark)
        grounds.append(browser.ask("return getComputedStyle(document.body).backgroundColor"))
        inks.append(browser.ask(
            "return Chart.getChart(document.querySelector('canvas')).options.scales.y.ticks.color"))
    check(grounds[0] != grounds[1], f"the page is {grounds[0]} in the dark too")
    check(inks[0] != inks[1], f"the charts' text is {inks[0]} in the dark too")
    browser.open(page, "phone", scripts=False)
    rows = sum(len(table) for table in browser.rows())
    check(rows > 10, f"{rows} table rows without JavaScript")
    shown = browser.ask("return document.querySelector('.figures').getBoundingClientRect().height")
    check(shown == 0, "empty charts are shown without JavaScript")
    check("charts need JavaScript" in browser.ask("return document.body.innerText"),
          "nothing says that the charts need JavaScript")


def hostile(value, fixed, key=""):
    """A report with markup at the end of every text but those of the `fixed` members."""
    if isinstance(value, dict):
        return {k: hostile(v, fixed, k) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, fixed, key) for v in value]
    return value + HOSTILE if isinstance(value, str) and key not in fixed else value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--screenshots")
    arguments = parser.parse_args()
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if webdriver is None or not chromium or not driver:
        print("skipped: needs Debian's packages chromium, chromium-driver and python3-selenium")
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reports = Reports(str(pathlib.Path(arguments.program).resolve()), folder)
        skipping = reports.config("skips", "{policy: mixed_float16, loss_scale: "
                                  "{initial: 67108864, growth_steps: 5}}")
        reports.run("train", skipping, "--threads", 1, "--run-dir", "run")
        plain = reports.config("plain", "{policy: float32}")
        reports.run("compare", plain, "--threads", 1, "--seeds", 3, "--run-dir", "study",
                    "--policies", "float32,mixed_float16,mixed_bfloat16")
        reports.run("bench", plain, "--threads", 1, "--warmup", 2, "--steps", 40, "--repeat", 2,
                    "--policies", "float32,mixed_float16", "--profile", "--run-dir", "bench")
        for name, words in (("eval", ("eval", skipping, "--checkpoint", "run", "--json")),
                            ("explain", ("explain", skipping, "--json"))):
            (reports.folder / f"{name}.json").write_text(reports.run(*words))
        pages = {"run": check_train, "study": check_compare, "bench": check_bench,
                 "eval.json": check_eval, "explain.json": check_explain}
        browser = Browser(chromium, driver, f"{folder}/profile")
        try:
            for name, checks in pages.items():
                page, report = reports.export(name)
                for size in SIZES:
                    browser.open(page, size)
                    checks(browser, report, check_frame(browser, name, size))
                    browser.save(arguments.screenshots, f"{name}-{size}")
                browser.open(page, "desktop", dark=True)
                browser.save(arguments.screenshots, f"{name}-dark")
            check_look(browser, reports.folder / "run.html")
            for name in pages:
                path = reports.folder / name
                path = path / "report.json" if path.is_dir() else path
                spoilt = reports.folder / f"hostile_{name.replace('.json', '')}.json"
                # Times are read as such; the sums of an explanation are checked against types and dtypes.
                fixed = {"kind", "status", "unit", "mode", "metric", "split", "date", "started_at", "ended_at"}
                if name == "explain.json":
                    fixed |= {"type", "in_dtype", "compute_dtype", "out_dtype"}
                spoilt.write_text(json.dumps(hostile(json.loads(path.read_text()), fixed)))
                page, _ = reports.export(spoilt.name)
                browser.open(page, "desktop")
                check_frame(browser, spoilt.name, "desktop")
                check(HOSTILE in browser.ask("return document.body.textContent"),
                      f"{spoilt.name}: the hostile text is not on the page")
                scripts = browser.ask("""return Array.from(document.scripts).filter(
                    (s) => s.type !== "application/json").length""")
                check(scripts == 2, f"{spoilt.name}: {scripts} scripts")
        finally:
            browser.driver.quit()
    print("ok" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
