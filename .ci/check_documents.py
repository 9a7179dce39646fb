#!/usr/bin/env python3
"""Checks the README files against the tree: links lead to files and headings, labels to targets, and the tables of
flags list what --help lists. Run it from the root of the repository; it builds the programs whose flags it reads.

check_documents.py [BAZEL_FLAG...]
"""

import re
import subprocess
import sys
from pathlib import Path

BAZEL_FLAGS = sys.argv[1:]

# The README with a table of flags, the table's heading, and the programs that have the flags. A flag that only one of
# the programs has may stand anywhere in the file.
FLAG_TABLES = [
    (Path("models/README.md"), "//models/gpt:gpt"),
    (Path("models/README.md"), "//models/recipe:recipe"),
    (Path("models/README.md"), "//models/classifier:classifier"),
    (Path("models/README.md"), "//models/resnet:resnet"),
    (Path("tools/README.md"), "//tools/plan:plan"),
    (Path("tools/README.md"), "//tools/launch:launch"),
    (Path("tools/README.md"), "//tools/tune:tune"),
]
# Programs whose own flags the documents name where they are needed; their shared flags are in the tables.
PROGRAMS = ["//models/bert:bert", "//models/llama:llama", "//tools/convert:convert"]
# Flags of other programs that the documents name.
FOREIGN_FLAGS = {"--config", "--define", "--disk_cache", "--force", "--from", "--to", "--heads", "--optimizer",
                 "--dtype", "--list", "--dot", "--passes", "--gpu-check", "--list-targets", "--only", "--skip",
                 "--minutes", "--resume", "--max-mb", "--archive", "--json", "--init", "--vocab", "--help",
                 "--benchmark_filter", "--logdir", "--vocab-size", "--out", "--special", "--pattern", "--min-count",
                 "--tokenizer", "--after-file", "--compile", "--models", "--python"}

problems = []


def problem(path, text):
    problems.append(f"{path}: {text}")


def bazel(*arguments):
    return subprocess.run(["bazel", *arguments], capture_output=True, text=True)


def anchors(path):
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def check_links(path, text):
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists():
            problem(path, f"links to {target}, which is not there")
        elif anchor and anchor not in anchors(file):
            problem(path, f"links to {target}, but {file} has no such heading")


def check_labels(documents):
    labels = {}
    for path, text in documents.items():
        for label in re.findall(r"(?<![@\w:])//[a-z][\w/]*(?::\w+)?(?!\.\.\.|[\w/:])", text):
            if not label.endswith("/"):
                labels.setdefault(label, path)
    for label, path in sorted(labels.items()):
        if ":" not in label and not (Path(label[2:]) / "BUILD.bazel").exists():
            problem(path, f"names {label}, where no BUILD.bazel is")
    found = bazel("query", "--keep_going", "--noshow_progress", " + ".join(label for label in labels if ":" in label))
    for error in re.findall(r"no such (?:target|package) '([^']+)'", found.stderr):
        problem(labels.get(error, "README files"), f"names {error}, which is no target")


def flags_of(program):
    package, _, name = program[2:].partition(":")
    text = subprocess.run([f"bazel-bin/{package}/{name}", "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (--[a-z][a-z-]*)", text, re.MULTILINE))


def flags_in(text):
    # A switch has a --no- of its own.
    return {flag.replace("--no-", "--", 1) for flag in re.findall(r"(?<![\w-])--[a-z][a-z_-]*", text)}


def check_flags(documents):
    programs = sorted({program for _, program in FLAG_TABLES} | set(PROGRAMS))
    built = bazel("build", "--noshow_progress", *BAZEL_FLAGS, *programs)
    if built.returncode != 0:
        sys.exit(built.stderr)
    known = FOREIGN_FLAGS.union(*map(flags_of, PROGRAMS))
    for path, program in FLAG_TABLES:
        flags = flags_of(program)
        known |= flags
        for flag in sorted(flags - flags_in(documents[Path("models/README.md")] + documents[path])):
            problem(path, f"does not name {flag} of {program}")
    for path, text in documents.items():
        for flag in sorted(flags_in(text) - known):
            problem(path, f"names {flag}, which no program has")


def main():
    files = subprocess.run(["git", "ls-files", "*README.md"], capture_output=True, text=True, check=True).stdout.split()
    documents = {Path(file): Path(file).read_text() for file in files}
    for path, text in documents.items():
        check_links(path, text)
    check_labels(documents)
    check_flags(documents)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


main()
