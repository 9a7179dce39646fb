#!/usr/bin/env python3
"""check_layers.py [ROOT]: checks every #include of the tree at ROOT (.) against the layers.

Prints one line per violation and fails if there is any:
  - an include that goes up, by the list in framework/layers.bzl;
  - a cycle of includes;
  - MPI or CUDA outside of the folders that may use them;
  - a file that includes a header without a direct dependency of its target on that header's target
    (what clang's layering_check finds), and a file that no target has.

BUILD files are executed as Python with rules that only record what they are given; select() and
if_cuda() give all of their branches, so that a machine without a toolkit checks its targets too.
"""

import os
import re
import sys
import types

SUFFIXES = (".h", ".cc", ".cu", ".cuh", ".inc")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

# Prefixes of other projects' headers, and the libraries that have these headers.
LIBRARIES = {
    "CLI/": ("@cli11//:cli11",),
    "benchmark/": ("@googlebenchmark//:benchmark", "@googlebenchmark//:benchmark_main"),
    "fmt/": ("@fmt//:fmt",),
    "gmock/": ("@googletest//:gtest", "@googletest//:gtest_main"),
    "gtest/": ("@googletest//:gtest", "@googletest//:gtest_main"),
    "hwy/": ("@highway//:hwy",),
    "mpi.h": ("@openmpi//:mpi",),
    "nlohmann/": ("@nlohmann_json//:json",),
    "openssl/": ("@openssl//:crypto",),
    "pcre2.h": ("@pcre2//:pcre2",),
    "spdlog/": ("@spdlog//:spdlog",),
    "utf8proc.h": ("@utf8proc//:utf8proc",),
    "zlib.h": ("@zlib//:zlib",),
}
CUDA = re.compile(r"^(cuda|cublas|cudnn|nccl|nv/|mma\.h)")
MPI_PLACES = ("framework/comm/", "tests/", "tools/bench/comm_bench.cc")
CUDA_PLACES = re.compile(r"/cuda/|^tests/|^tools/bench/gpu/")


# Functions that BUILD and .bzl files call: rules with C++ sources, and functions without any.
CC_RULES = ("cc_binary", "cc_import", "cc_library", "cc_test")
IGNORED = ("CcInfo", "DefaultInfo", "aspect", "attr", "cc_common", "config_setting", "depset", "exports_files",
           "filegroup", "genrule", "licenses", "package", "provider", "py_binary", "py_library", "py_test",
           "repository_rule", "sh_binary", "sh_library", "sh_test", "struct", "test_suite")


class Target:
    """A cc_library, cc_binary, cc_test or cuda_library, as far as the checks need it."""

    def __init__(self, label, attributes):
        self.label = label
        package = label[2:].partition(":")[0]

        def labels(*names):
            return [absolute_label(item, package) for name in names for item in attributes.get(name) or []]

        self.headers = {path_of(item) for item in labels("hdrs", "textual_hdrs")}
        self.sources = {path_of(item) for item in labels("srcs")}
        self.deps = labels("deps", "implementation_deps")
        # The prefix of header paths that #includes leave out: "zero/"
        prefix = attributes.get("strip_include_prefix")
        self.left_out = prefix.strip("/") + "/" if prefix else None


def absolute_label(label, package):
    """":x", "//a/b", "x.cc" and "@fmt" as "//package:x", "//a/b:b", "//package:x.cc" and "@fmt//:fmt"."""
    repository, slashes, rest = str(label).rpartition("//")
    if not slashes and rest.startswith("@"):
        return f"{rest}//:{rest[1:]}"
    if not slashes:
        return f"//{package}:{rest.lstrip(':')}"
    return f"{repository}//{rest}" + ("" if ":" in rest else f":{rest.rpartition('/')[2]}")


def path_of(label):
    """"//package:file" as "package/file"."""
    return label.replace(":", "/").lstrip("/")


class Anything:
    """Stands in for the parts of Starlark's library that describe no C++ target."""

    def __call__(self, *args, **kwargs):
        return Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __iter__(self):
        return iter(())

    def __add__(self, other):
        return other

    __radd__ = __add__


class Label(str):
    workspace_name = ""


class Workspace:
    """The targets of a tree."""

    def __init__(self, root):
        self.root = root
        self.targets = {}  # by label
        self.aliases = {}
        self.bzl_files = {}
        self.package = ""

    def record(self, name=None, **attributes):
        if name is None:
            return
        label = f"//{self.package}:{name}"
        self.targets[label] = Target(label, attributes)

    def record_alias(self, name, actual, **_):
        self.aliases[f"//{self.package}:{name}"] = absolute_label(actual, self.package)

    def resolve(self, label):
        while label in self.aliases:
            label = self.aliases[label]
        return label

    def glob(self, include, exclude=(), **_):
        directory = os.path.join(self.root, self.package)
        found = []
        for path, folders, names in os.walk(directory):
            folders[:] = [name for name in folders
                          if not os.path.exists(os.path.join(path, name, "BUILD.bazel"))]
            for name in names:
                relative = os.path.relpath(os.path.join(path, name), directory)
                if any(matches(relative, pattern) for pattern in include) and not any(
                        matches(relative, pattern) for pattern in exclude):
                    found.append(relative)
        return sorted(found)

    def global_names(self):
        """The names that BUILD and .bzl files can use."""
        names = dict.fromkeys(IGNORED, Anything())
        names.update(dict.fromkeys(CC_RULES, self.record))
        names.update(
            alias=self.record_alias, fail=fail, glob=self.glob, Label=Label, rule=lambda **_: self.record,
            select=lambda branches: [item for items in branches.values() for item in items],
            package_name=lambda: self.package)
        names["native"] = types.SimpleNamespace(**names)
        return names

    def load(self, into, label, *names, **renamed):
        loaded = self.loaded(label)
        for name in names:
            into[name] = loaded.get(name, Anything())
        for new_name, name in renamed.items():
            into[new_name] = loaded.get(name, Anything())

    def loaded(self, label):
        """The globals of a .bzl file."""
        if label == "@rules_cc//cc:defs.bzl":
            return self.global_names()
        if label == "@cuda//:cuda.bzl":
            both = lambda yes, no=(): list(yes) + list(no)
            return {"if_cuda": both, "if_nccl": both, "CUDA_AVAILABLE": True, "CUDA_PATH": "",
                    "CUDA_ARCHS": []}
        if label.startswith("@"):
            return {}
        path = path_of(absolute_label(label, self.package))
        if path not in self.bzl_files:
            self.bzl_files[path] = self.execute(path)
        return self.bzl_files[path]

    def execute(self, path):
        names = self.global_names()
        names["load"] = lambda label, *args, **kwargs: self.load(names, label, *args, **kwargs)
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), names)  # pylint: disable=exec-used
        return names

    def read_build_file(self, path):
        self.package = os.path.dirname(path)
        self.execute(path)


def fail(message):
    sys.exit(f"check_layers.py: {message}")


def matches(path, pattern):
    """A glob pattern of Bazel's: * within one folder, ** across them."""
    parts = [r"(?:.*/)?" if part == "**/" else r".*" if part == "**" else r"[^/]*" if part == "*"
             else re.escape(part) for part in re.split(r"(\*\*/|\*\*|\*)", pattern)]
    return re.fullmatch("".join(parts), path) is not None


def includes_of(text):
    """(line, quoted, path) of every #include."""
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1) == '"', match.group(2)


def layer_of(path, layers):
    """The layer of the innermost folder that is one, or None."""
    found = [layer for layer in layers if path.startswith(layer + "/")]
    return max(found, key=len, default=None)


def find_circles(edges):
    """One line per cycle of includes; each is found once."""
    state, trail, circles = {}, [], []

    def visit(path):
        state[path] = "open"
        trail.append(path)
        for used in sorted(edges.get(path, ())):
            if state.get(used) == "open":
                circle = trail[trail.index(used):] + [used]
                circles.append("these include each other: " + " -> ".join(circle))
            elif used not in state:
                visit(used)
        trail.pop()
        state[path] = "done"

    for path in sorted(edges):
        if path not in state:
            visit(path)
    return circles


def check_layer(path, included, rules):
    layers = rules["LAYERS"]
    user, used = layer_of(path, layers), layer_of(included, layers)
    if user is None or used is None:
        return f"{path if user is None else included} is in none of the layers of framework/layers.bzl"
    if rules["may_use"](user, used):
        return None
    if layers.index(user) < layers.index(used):
        return f"{user} is below {used}"
    return f"{user} is a part of the compiler, which does not know what executes: {used}"


def check_system_header(path, included):
    if included == "mpi.h" and not path.startswith(MPI_PLACES):
        return "MPI stays in framework/comm"
    if CUDA.match(included) and not CUDA_PLACES.search(path):
        return "CUDA stays in folders of the name cuda"
    return None


def check_deps(target, workspace, path, included, owners):
    """Whether `target`, which has `path`, may include a file of the targets `owners`."""
    if target.label in owners:
        return None
    deps = {workspace.resolve(dep) for dep in target.deps}
    if any(included in workspace.targets[dep].headers for dep in deps if dep in workspace.targets):
        return None
    public = [owner for owner in owners if included in workspace.targets[owner].headers]
    if not public:
        return f"{' and '.join(owners)} keeps {included} for itself"
    return f"{target.label} needs {' or '.join(public)} in its deps"


def files_of(root):
    """The project's files, without build outputs, third_party and the folders in .bazelignore."""
    skipped = {"third_party"}
    if os.path.exists(os.path.join(root, ".bazelignore")):
        with open(os.path.join(root, ".bazelignore"), encoding="utf-8") as file:
            skipped |= {line.strip().rstrip("/") for line in file}
    found = []
    for folder, folders, names in os.walk(root):
        relative = "" if folder == root else os.path.relpath(folder, root) + "/"
        folders[:] = [name for name in folders if not name.startswith((".", "bazel-")) and
                      relative + name not in skipped]
        found += [relative + name for name in names]
    return sorted(found)


def check(root):
    """The violations, one line each, and the number of C++ files."""
    files = files_of(root)
    workspace = Workspace(root)
    for path in files:
        if os.path.basename(path) == "BUILD.bazel":
            workspace.read_build_file(path)
    rules = workspace.loaded("//framework:layers.bzl")

    owners, paths = {}, {}  # targets by file; and paths by the text of an #include, where it differs
    for target in workspace.targets.values():
        for path in target.headers | target.sources:
            owners.setdefault(path, []).append(target.label)
            if target.left_out and path.startswith(target.left_out):
                paths[path[len(target.left_out):]] = path

    violations, edges = [], {}
    sources = [path for path in files if path.endswith(SUFFIXES)]
    for path in sources:
        if path not in owners:
            violations.append(f"{path}: no target has this file")
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for line, quoted, included in includes_of(text):
            found = []
            included = paths.get(included, included)
            if quoted and included in owners:
                edges.setdefault(path, set()).add(included)
                found.append(check_layer(path, included, rules))
                for label in owners.get(path, []):
                    target = workspace.targets[label]
                    found.append(check_deps(target, workspace, path, included, owners[included]))
            elif quoted:
                found.append("no target has the included file")
            else:
                found.append(check_system_header(path, included))
                libraries = next((value for key, value in LIBRARIES.items()
                                  if included.startswith(key)), None)
                for label in owners.get(path, []) if libraries else []:
                    if not set(libraries) & set(workspace.targets[label].deps):
                        found.append(f"{label} needs {libraries[0]} in its deps")
            violations += [f'{path}:{line}: includes "{included}": {text}' for text in found if text]
    return violations + find_circles(edges), len(sources)


def main():
    violations, num_files = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    for violation in violations:
        print(violation)
    if num_files == 0:
        violations.append("nothing to check")
        print("no C++ files found")
    sys.exit(1 if violations else 0)


main()
