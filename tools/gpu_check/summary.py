"""One page about a run: what to look at first, what passed, figures beside expected figures, what was not reached."""

from typing import Dict, List

from figures import Figure, class_table, figures_of
from results import Facts, Results

MOST_FAILURES = 12
REASON_COLUMNS = 200
STATUSES = ["passed", "failed", "skipped", "not run"]
WORTH_MORE = ["environment", "full_size.bits", "full_size.loss_parity"]  # first among failures


def summarize(results: Results, names: List[str]) -> str:
    """The summary of the checks with these names, in their order."""
    entries = {name: results.checks.get(name, {"status": "not run", "reason": "the run was ended before"})
               for name in names}
    figures = figures_of(results)
    lines = ["# GPU check", "", *machine_lines(entries), "", "## First", "", *first_lines(entries, figures), "",
             "## Checks", "", *count_lines(entries), "", "## Figures", "",
             "GPT-2 124M, batch 32; expected as on an H100 of 700 W. Marks: off by more than a factor of two.",
             "", *figure_lines(figures)]
    table = class_table(results)
    if table:
        lines += ["", "## A step by classes of kernels", "", "```", *table, "```"]
    algorithms = algorithm_lines(results)
    if algorithms:
        lines += ["", "## Algorithms of products", "", "```", *algorithms, "```"]
    lines += ["", "## Not reached", "", *not_reached_lines(entries)]
    return "\n".join(lines) + "\n"


def machine_lines(entries: Dict[str, Facts]) -> List[str]:
    facts = entries.get("environment", {}).get("facts") or {}
    gpus = [f"{gpu['name']}, driver {gpu['driver']}, {gpu['memory_bytes'] / 2**30:.0f} GiB"
            for gpu in facts.get("gpus", [])]
    libraries = [f"{name}: {path}" for name, path in facts.get("libraries", {}).items()]
    return [f"- {line}" for line in gpus + libraries] or ["- no GPU was seen"]


def first_lines(entries: Dict[str, Facts], figures: List[Figure]) -> List[str]:
    failed = [name for name, entry in entries.items() if entry["status"] == "failed"]
    failed.sort(key=lambda name: name not in WORTH_MORE)
    lines = [f"- **failed** {name}: {short(entries[name].get('reason', ''))}" for name in failed[:MOST_FAILURES]]
    if len(failed) > MOST_FAILURES:
        lines.append(f"- and {len(failed) - MOST_FAILURES} more that failed")
    lines += [f"- {figure.mark()} {figure.name}: {figure.measured:.3g} {figure.unit}, expected {figure.expected:g}"
              for figure in sorted(figures, key=Figure.mark, reverse=True) if figure.mark()]
    lines += [f"- {name} passed alone only: beside other checks it was too slow"
              for name, entry in entries.items() if entry.get("again") and entry["status"] == "passed"]
    return lines or ["- nothing failed, and no figure is far from what was expected"]


def short(reason: str) -> str:
    first = (reason.splitlines() or [""])[0]
    return first if len(first) <= REASON_COLUMNS else first[:REASON_COLUMNS] + " ..."


def count_lines(entries: Dict[str, Facts]) -> List[str]:
    """Counts by the part of a name before the first dot; the groups of demos include the model."""
    groups: Dict[str, List[str]] = {}
    for name, entry in entries.items():
        parts = name.split(".")
        groups.setdefault(".".join(parts[:2]) if parts[0] == "demo" else parts[0], []).append(entry["status"])
    lines = ["| checks | " + " | ".join(STATUSES) + " |", "| --- |" + " ---: |" * len(STATUSES)]
    for group, statuses in {**groups, "**all**": [entry["status"] for entry in entries.values()]}.items():
        # A check that a kill left running counts as not run.
        counts = [statuses.count(status) for status in STATUSES[:3]]
        lines.append(f"| {group} | " + " | ".join(map(str, [*counts, len(statuses) - sum(counts)])) + " |")
    return lines


def figure_lines(figures: List[Figure]) -> List[str]:
    lines = ["| figure | expected | measured | ratio | |", "| --- | ---: | ---: | ---: | --- |"]
    for figure in figures:
        ratio = figure.ratio()
        measured = "-" if figure.measured is None else f"{figure.measured:.3g} {figure.unit}"
        lines.append(f"| {figure.name} | {figure.expected:g} {figure.unit} | {measured} | "
                     f"{'-' if ratio is None else f'{ratio:.2f}'} | {figure.mark()} |")
    return lines


def algorithm_lines(results: Results) -> List[str]:
    """By which algorithms of cuBLASLt the full size is multiplied: the first that it proposes, and the fastest."""
    names = {"full_size.bits": "proposed first", "full_size.gemm_choices": "fastest"}
    return [f"{how}: {algorithm}" for name, how in names.items()
            for algorithm in results.facts(name).get("algorithms", [])]


def not_reached_lines(entries: Dict[str, Facts]) -> List[str]:
    """Names by reason; the names of one group are merged."""
    lines: Dict[str, List[str]] = {}
    for name, entry in entries.items():
        if entry["status"] not in ("passed", "failed"):
            why = entry.get("reason", "a kill ended it")
            lines.setdefault(f"{entry['status']}, {short(why)}", []).append(name)
    return [f"- {', '.join(named(names))}: {why}" for why, names in lines.items()] or ["- everything was reached"]


def named(names: List[str]) -> List[str]:
    groups: Dict[str, List[str]] = {}
    for name in names:
        groups.setdefault(name.split(".")[0], []).append(name)
    return [own[0] if len(own) == 1 else f"{len(own)} of {group}" for group, own in groups.items()]
