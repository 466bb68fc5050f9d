"""Writes benches/RESULTS.md and its plots from what `make bench` measured.

    python benches/report.py FOLDER [--results benches/RESULTS.md] [--plots benches/plots]

FOLDER holds coverage.json, masks.json and peers.json (`maskwright bench masks`), suite.json (`bench suite`),
decode-*.json (`bench decode`) and peer-decode-*.json (benches/peers/decode.py); what is missing is left out. Needs
matplotlib for the plots; without it there are none.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTCOMES = ("passing", "compile_error", "validation_error", "invalidation_error", "timeout", "crash")
STATS = ("n", "avg", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "max")
COLOURS = {"maskwright": "#1b6ca8", "maskwright-any": "#7db7e0", "llguidance": "#e07b39"}


def load(folder: pathlib.Path, name: str):
    path = folder / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def said(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        kib = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]
        memory = f", {round(int(kib) / 2**20)} GiB of memory"
    except (OSError, StopIteration):
        name, memory = platform.processor() or platform.machine(), ""
    return f"{os.cpu_count()} cores of {name}{memory}, {platform.system()} {platform.release()}"


def number(value) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def table(heads: list, rows: list) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def flipped(engines: list, rows: list) -> str:
    """Engines side by side: rows of a name and a function from an engine to a cell."""
    heads = [""] + [engine["name"] for engine in engines]
    return table(heads, [[name] + [number(cell(engine)) for engine in engines] for name, cell in rows])


def coverage_rows() -> list:
    rows = [("schemas", lambda engine: engine["schemas"])]
    rows += [
        (outcome.replace("_", " "), lambda engine, outcome=outcome: engine["counts"][outcome]) for outcome in OUTCOMES
    ]
    share = lambda engine: f"{100 * engine['counts']['passing'] / max(engine['schemas'], 1):.1f} %"  # noqa: E731
    return rows[:2] + [("passing, share", share)] + rows[2:]


def time_rows(keys: list, clock: str = "cpu") -> list:
    return [
        (f"{label}, {stat}", lambda engine, key=key, stat=stat: dig(engine, key, clock, stat))
        for label, key in keys
        for stat in STATS
    ]


def dig(value, *keys):
    for key in keys:
        if isinstance(value, list):
            value = value[key] if key < len(value) else None
        else:
            value = (value or {}).get(key)
    return value


def about(run: dict) -> str:
    return "".join(f"- **{engine['name']}**: {engine['about'] or 'did not start'}\n" for engine in run["engines"])


def settings(run: dict) -> str:
    given = run["settings"]
    tokenizer = pathlib.Path(given["tokenizer"])
    # A file of that name says nothing; its folder does.
    tokenizer = tokenizer.parent.name if tokenizer.name == "tokenizer.json" else tokenizer.name
    what = f"{run['schemas']:,} schemas"
    if given.get("sample"):
        what = f"sample of {run['schemas']:,} schemas, seed {given['seed']}"
    if given.get("split"):
        what += f", split {given['split']}"
    cut = "" if run["whole"] else ", **cut off before its end**"
    return (
        f"{what}; tokenizer {tokenizer} ({given['tokens']:,} tokens); {given['timeout_s']} s of CPU time a "
        f"schema; {given['jobs']} thread(s){cut}."
    )


def coverage(run: dict) -> str:
    text = f"{settings(run)}\n\n{about(run)}\n{flipped(run['engines'], coverage_rows())}\n"
    families = sorted({family for engine in run["engines"] for family in engine["families"]})
    passing = [
        (family, lambda engine, family=family: share(engine["families"].get(family, {}))) for family in families
    ]
    text += "Passing, by family:\n\n" + flipped(run["engines"], passing)
    totals: dict = {}
    for word, counts in run["engines"][0]["keywords"].items():
        totals[word] = sum(counts.values())
    words = sorted(totals, key=lambda word: (-totals[word], word))
    words = [word for word in words if totals[word] >= 20][:60]
    rows = [
        (f"`{word}`", lambda engine, word=word: share(engine["keywords"].get(word, {}))) for word in words
    ]
    text += "\nPassing among the schemas that use a keyword (those in 20 schemas or more):\n\n"
    text += flipped(run["engines"], rows)
    for engine in run["engines"]:
        rows = []
        for outcome, reasons in engine["failing"].items():
            for reason, ids in reasons.items():
                rows.append((len(ids), [str(len(ids)), outcome.replace("_", " "), code(reason), ids[0]]))
        rows = [row for _, row in sorted(rows, key=lambda row: -row[0])[:15]]
        if rows:
            text += f"\nWhat fails under {engine['name']}, most frequent first:\n\n"
            text += table(["schemas", "counted as", "reason", "for instance"], rows)
    return text


def share(counts: dict) -> str:
    total = sum(counts.values())
    return f"{counts.get('passing', 0)} of {total}" if total else "–"


def code(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def times(run: dict) -> str:
    keys = [("compile, µs", "compile_us"), ("TTFM, µs", "ttfm_us"), ("TTFM of a known schema, µs", "ttfm_again_us")]
    keys += [("TBM, µs", "tbm_us")]
    if any("second_tbm_us" in engine for engine in run["engines"]):
        keys += [("TBM of the second pass, µs", "second_tbm_us")]
    text = f"{settings(run)} CPU time.\n\n{about(run)}\n{flipped(run['engines'], coverage_rows())}\n"
    text += flipped(run["engines"], time_rows(keys))
    rows = []
    for label, key in (("", "instances"), (", second pass", "second_instances")):
        for engine in run["engines"]:
            for row in engine.get(key) or []:
                if dig(row, "cpu", "n"):
                    stats = [number(dig(row, "cpu", stat)) for stat in STATS]
                    rows.append([engine["name"], row["instance"] + label, *stats])
    text += "\nTBM by the number of the instance under its schema, µs:\n\n"
    text += table(["engine", "instance", *STATS], rows)
    rows = [
        ("schemas", lambda engine: dig(engine, "compiled_by_all", "schemas")),
        ("TTFM, avg", lambda engine: dig(engine, "compiled_by_all", "ttfm_us", "cpu", "avg")),
        ("TTFM, p50", lambda engine: dig(engine, "compiled_by_all", "ttfm_us", "cpu", "p50")),
        ("TBM, avg", lambda engine: dig(engine, "compiled_by_all", "tbm_us", "cpu", "avg")),
        ("TBM, p50", lambda engine: dig(engine, "compiled_by_all", "tbm_us", "cpu", "p50")),
        ("TBM, p99", lambda engine: dig(engine, "compiled_by_all", "tbm_us", "cpu", "p99")),
    ]
    text += "\nOnly the schemas that every engine compiled, µs:\n\n" + flipped(run["engines"], rows)
    rows = [("forced tokens of valid instances, %", lambda engine: dig(engine, "forced", "percent"))]
    peak = lambda engine: engine["peak_bytes"] / 2**20 if engine.get("peak_bytes") else None  # noqa: E731
    rows += [("peak memory of its process, MiB", peak)]
    text += "\n" + flipped(run["engines"], rows)
    if dig(run, "memory_bytes", "highest"):
        text += f"\nPeak memory of the engines in one process: {run['memory_bytes']['highest'] >> 20} MiB.\n"
    if run.get("verify"):
        verify = run["verify"]
        text += (
            f"\nIn lockstep with plain llguidance on the same grammars: {verify['masks']:,} masks of "
            f"{verify['schemas']:,} schemas compared bit by bit, {verify['schemas_with_differences']} schemas with a "
            f"difference, {verify['timeouts']} timeouts.\n"
        )
    return text


def suite(run: dict) -> str:
    columns = ["tests", "skipped", "valid_accepted", "valid_reordered", "valid_rejected"]
    columns += ["invalid_rejected", "invalid_accepted", "invalid_reordered"]
    heads = ["refused" if column == "skipped" else column.replace("_", " ") for column in columns[1:]]
    rows, keyword_rows = [], []
    for draft in run["drafts"]:
        for group in ("main", "format"):
            for engine in draft["engines"]:
                total = dict(engine["groups"].get(group, {}).get("total", {}))
                if total:
                    total["tests"] = sum(total.values())
                    label = draft["draft"] if group == "main" else f"{draft['draft']} optional/format"
                    rows.append([label, engine["name"], *(str(total[column]) for column in columns)])
        if draft["draft"] == "draft2020-12":
            first, second = draft["engines"][0], draft["engines"][-1]
            for file, result in first["groups"]["main"]["files"].items():
                other = second["groups"]["main"]["files"][file]
                cells = [right(result["counts"]), right(other["counts"])]
                wrong = result["counts"]["invalid_accepted"] + result["counts"]["invalid_reordered"]
                keyword_rows.append([f"`{file}`", str(result["counts"]["tests"]), *cells, str(wrong)])
            names = (first["name"], second["name"])
    text = table(["group", "engine", "tests", *heads], rows)
    if keyword_rows:
        text += "\nDraft 2020-12 by file: tests that come out right (reordered ones among them), in numbers:\n\n"
        text += table(["file", "tests", *names, f"wrongly accepted by {names[0]}"], keyword_rows)
    return text


def right(counts: dict) -> str:
    return str(counts["valid_accepted"] + counts["valid_reordered"] + counts["invalid_rejected"])


def decode(runs: list) -> str:
    columns = ["tokens_per_second", "tokens", "forced_tokens", "forward_passes", "first_token_ms"]
    columns += ["grammar_percent", "first_grammar_ms"]
    heads = ["tokens/s", "tokens", "forced", "passes", "first token, ms"]
    heads += ["grammar, % of decoding", "grammar of the first reply, ms"]
    rows = []
    for run in runs:
        for row in run["rows"]:
            cells = [number(row.get(column)) for column in columns]
            rows.append([str(run["threads"]), row["case"], run["engine"], row["way"], *cells])
    rows.sort(key=lambda row: (row[0], row[1]))
    speeds = "".join(
        f"- {run['engine']} ({run['version']}), {run['threads']} thread(s): prefill of {run['prefill_tokens']}: "
        f"{number(run['prefill_tokens_per_second'])} tokens/s; {run['rounds']} rounds\n"
        for run in runs
    )
    note = (
        "Each round repeats the same reply, so that its masks are known from the second on; the last column is the "
        "first reply's. Where tokens are forced from the start, the first is there before the prompt is read.\n"
    )
    return f"{speeds}\n{note}\n" + table(["threads", "case", "engine", "way", *heads], rows)


def plots(folder: pathlib.Path, found: dict, out: pathlib.Path) -> list:
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "maskwright", "font.size": 9})
    from matplotlib import pyplot

    out.mkdir(parents=True, exist_ok=True)
    written = []

    def save(figure, name: str, title: str) -> None:
        figure.savefig(out / name, metadata={"Date": None})
        pyplot.close(figure)
        written.append((name, title))

    for key, title in (("masks", "Time of a mask"), ("peers", "Time of a mask, all engines")):
        run = found.get(key)
        if run and any(engine.get("curve_cpu_us") for engine in run["engines"]):
            figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
            for engine in run["engines"]:
                points = [(value, tenths / 1000) for tenths, value in engine.get("curve_cpu_us") or [] if value > 0]
                if points:
                    axes.step(*zip(*points), label=engine["name"], color=COLOURS.get(engine["name"]))
            axes.set(xscale="log", xlabel="mask and commit of a token, µs of CPU time", ylabel="share of tokens", title=title)
            axes.grid(True, alpha=0.3)
            axes.legend()
            save(figure, f"{key}-cdf.svg", title)
    for key in ("coverage", "peers"):
        run = found.get(key)
        if run:
            figure, axes = pyplot.subplots(figsize=(7, 0.4 * len(run["engines"]) + 1.4), layout="constrained")
            left = [0.0] * len(run["engines"])
            names = [engine["name"] for engine in run["engines"]]
            colours = ["#3a923a", "#bbbbbb", "#e1b12c", "#c0392b", "#8e44ad", "#2c3e50"]
            for outcome, colour in zip(OUTCOMES, colours):
                shares = [100 * e["counts"][outcome] / max(e["schemas"], 1) for e in run["engines"]]
                axes.barh(names, shares, left=left, label=outcome.replace("_", " "), color=colour)
                left = [a + b for a, b in zip(left, shares)]
            axes.invert_yaxis()
            axes.set(xlabel="% of schemas", xlim=(0, 100), title=f"MaskBench, {run['schemas']:,} schemas")
            figure.legend(ncols=3, loc="outside lower center", frameon=False)
            save(figure, f"{key}.svg", "Coverage")
    runs = found.get("decode") or []
    if runs:
        threads = runs[0]["threads"]
        bars: dict = {}
        for run in runs:
            if run["threads"] == threads:
                for row in run["rows"]:
                    bars.setdefault(f"{run['engine']}: {row['way']}", {})[row["case"]] = row.get("tokens_per_second")
        cases = list(dict.fromkeys(row["case"] for run in runs for row in run["rows"]))
        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        width = 0.8 / len(bars)
        for index, (name, speeds) in enumerate(bars.items()):
            places = [place + index * width for place in range(len(cases))]
            axes.bar(places, [speeds.get(case) or 0 for case in cases], width, label=name)
        axes.set_xticks([place + 0.4 - width / 2 for place in range(len(cases))], [c.replace(", ", ",\n") for c in cases])
        axes.tick_params(axis="x", labelsize=7)
        axes.set(ylabel="tokens/s", title=f"{runs[0]['model']}, {threads} thread(s)")
        figure.legend(ncols=3, loc="outside lower center", frameon=False)
        save(figure, "decode.svg", "Decoding")
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "benches/RESULTS.md")
    parser.add_argument("--plots", type=pathlib.Path, default=ROOT / "benches/plots")
    parser.add_argument("--note", default="", help="a sentence on the circumstances")
    options = parser.parse_args()
    found = {name: load(options.folder, f"{name}.json") for name in ("coverage", "masks", "peers", "suite")}
    patterns = ("decode-*.json", "peer-decode-*.json")
    found["decode"] = [
        json.loads(path.read_text(encoding="utf-8"))
        for pattern in patterns
        for path in sorted(options.folder.glob(pattern))
    ]
    commit = said("git", "rev-parse", "--short", "HEAD") + ("" if not said("git", "status", "--porcelain", "-uno") else ", changed")
    drawn = plots(options.folder, found, options.plots)
    images = {name: f"![{title}]({os.path.relpath(options.plots / name, options.results.parent)})\n\n" for name, title in drawn}
    parts = [
        "# Results\n",
        f"Written by `benches/report.py` on {datetime.date.today().isoformat()}, commit {commit or 'unknown'}, on {machine()}; "
        f"{said('rustc', '--version') or 'rustc'}, release profile. {options.note}\n".replace("  ", " "),
        "CPU times are of the thread that works (of the process, for engines in processes of their own); reading the "
        "clocks adds 0.2 to 0.7 µs to each. Micro-benchmarks are in [MICRO.md](MICRO.md).\n",
        "TBM is the time of mask and commit of a token, TTFM from the schema to the first mask. Schemas are counted as "
        "MaskBench's own runner counts them. `maskwright` keeps the schema's order of properties and plain numbers, its "
        "defaults; `maskwright-any` allows any order and any form of number.\n",
    ]
    if found["coverage"]:
        parts += ["## Coverage: MaskBench\n", images.get("coverage.svg", "") + coverage(found["coverage"])]
    if found["suite"]:
        parts += ["## Coverage: JSON-Schema-Test-Suite\n", suite(found["suite"])]
    if found["masks"]:
        parts += ["## Masks\n", images.get("masks-cdf.svg", "") + times(found["masks"])]
    if found["peers"]:
        parts += ["## Engines of other projects\n"]
        parts += [images.get("peers.svg", "") + images.get("peers-cdf.svg", "") + times(found["peers"])]
    if found["decode"]:
        parts += ["## Decoding\n", images.get("decode.svg", "") + decode(found["decode"])]
    # Measured by a bench of its own, and asked for here as well.
    micro = (ROOT / "benches/MICRO.md").read_text(encoding="utf-8")
    start = micro.find("## Masks under the grammars of tools")
    if start >= 0:
        end = micro.find("\n## ", start + 1)
        parts += [micro[start:] if end < 0 else micro[start : end + 1]]
    options.results.write_text("\n".join(parts), encoding="utf-8")
    print(f"{options.results}: written, {len(drawn)} plots")


if __name__ == "__main__":
    main()
