#!/usr/bin/env python3
"""check_layers_test.py CHECK_LAYERS LAYERS: the check of layers on small trees of this test's own."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LAYERS = pathlib.Path(sys.argv.pop(2)).absolute()
CHECK_LAYERS = pathlib.Path(sys.argv.pop(1)).absolute()

LIBRARY = """
cc_library(
    name = "{name}",
    srcs = {srcs},
    hdrs = {hdrs},
    deps = {deps},
)
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "framework").mkdir()
        shutil.copy(LAYERS, self.root / "framework/layers.bzl")

    def add(self, package, name, deps=(), hdrs=(), srcs=(), **files):
        """A library, and its files: their names with _h or _cc to what they include."""
        folder = self.root / package
        folder.mkdir(parents=True, exist_ok=True)
        build = folder / "BUILD.bazel"
        if not build.exists():
            build.write_text('load("//framework:layers.bzl", "visible_above")\n'
                             f'package(default_visibility = visible_above("{package}"))\n')
        for key, includes in files.items():
            file = ".".join(key.rsplit("_", 1))
            (folder / file).write_text("".join(f"#include {include}\n" for include in includes))
        names = [".".join(key.rsplit("_", 1)) for key in files]
        with build.open("a") as file:
            file.write(LIBRARY.format(
                name=name, deps=list(deps),
                hdrs=list(hdrs) + [name for name in names if name.endswith(".h")],
                srcs=list(srcs) + [name for name in names if not name.endswith(".h")]))

    def violations(self):
        done = subprocess.run([sys.executable, CHECK_LAYERS, self.root], stdout=subprocess.PIPE,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()

    def test_down_to_a_direct_dependency_is_right(self):
        self.add("framework/base", "status", status_h=["<string>"])
        self.add("framework/ir", "graph", ["//framework/base:status"], graph_h=['"framework/base/status.h"'],
                 graph_cc=['"framework/ir/graph.h"'])
        self.add("zero", "passes", ["//framework/ir:graph"], shard_cc=['"framework/ir/graph.h"'])
        self.assertEqual(self.violations(), [])

    def test_up(self):
        self.add("framework/nn", "nn", nn_h=[])
        self.add("framework/ir", "ir", ["//framework/nn"], graph_cc=["<vector>", '"framework/nn/nn.h"'])
        self.assertEqual(self.violations(), [
            'framework/ir/graph.cc:2: includes "framework/nn/nn.h": framework/ir is below framework/nn'])

    def test_the_framework_does_not_include_zero(self):
        self.add("zero", "zero", pipeline_h=[])
        self.add("framework/train", "train", ["//zero"], trainer_h=['"zero/pipeline.h"'])
        self.assertEqual(self.violations(), [
            'framework/train/trainer.h:1: includes "zero/pipeline.h": framework/train is below zero'])

    def test_the_compiler_does_not_include_what_executes(self):
        self.add("framework/comm", "comm", communicator_h=[])
        self.add("zero", "zero", ["//framework/comm"], bucketing_cc=['"framework/comm/communicator.h"'])
        self.assertEqual(self.violations(), [
            'zero/bucketing.cc:1: includes "framework/comm/communicator.h": '
            "zero is a part of the compiler, which does not know what executes: framework/comm"])

    def test_models_do_not_include_what_executes(self):
        self.add("framework/comm", "comm", communicator_h=[])
        self.add("framework/nn", "nn", ["//framework/comm"], linear_cc=['"framework/comm/communicator.h"'])
        self.assertEqual(self.violations(), [
            'framework/nn/linear.cc:1: includes "framework/comm/communicator.h": '
            "framework/nn is a part of the compiler, which does not know what executes: framework/comm"])

    def test_an_unknown_layer(self):
        self.add("framework/base", "base", status_h=[])
        self.add("framework/new", "new", ["//framework/base"])
        (self.root / "framework/new/BUILD.bazel").write_text(
            LIBRARY.format(name="new", srcs=["new.cc"], hdrs=[], deps=["//framework/base"]))
        (self.root / "framework/new/new.cc").write_text('#include "framework/base/status.h"\n')
        self.assertEqual(self.violations(), [
            'framework/new/new.cc:1: includes "framework/base/status.h": '
            "framework/new/new.cc is in none of the layers of framework/layers.bzl"])

    def test_a_circle(self):
        self.add("framework/nn", "nn", a_h=['"framework/nn/b.h"'], b_h=['"framework/nn/c.h"'],
                 c_h=['"framework/nn/a.h"'])
        self.assertEqual(self.violations(), [
            "these include each other: "
            "framework/nn/a.h -> framework/nn/b.h -> framework/nn/c.h -> framework/nn/a.h"])

    def test_a_dependency_of_a_dependency(self):
        self.add("framework/base", "status", status_h=[])
        self.add("framework/ir", "graph", ["//framework/base:status"], graph_h=['"framework/base/status.h"'])
        self.add("framework/nn", "nn", ["//framework/ir:graph"], nn_h=['"framework/base/status.h"'])
        self.assertEqual(self.violations(), [
            'framework/nn/nn.h:1: includes "framework/base/status.h": '
            "//framework/nn:nn needs //framework/base:status in its deps"])

    def test_a_private_header(self):
        self.add("framework/base", "status", srcs=["detail.h"], status_cc=[])
        (self.root / "framework/base/detail.h").write_text("")
        self.add("framework/ir", "graph", ["//framework/base:status"], graph_h=['"framework/base/detail.h"'])
        self.assertEqual(self.violations(), [
            'framework/ir/graph.h:1: includes "framework/base/detail.h": '
            "//framework/base:status keeps framework/base/detail.h for itself"])

    def test_a_library_of_others(self):
        self.add("framework/base", "status", status_cc=["<fmt/format.h>"])
        self.add("framework/ir", "graph", ["@fmt"], graph_cc=["<fmt/format.h>"])
        self.assertEqual(self.violations(), [
            'framework/base/status.cc:1: includes "fmt/format.h": '
            "//framework/base:status needs @fmt//:fmt in its deps"])

    def test_mpi_and_cuda_stay_in_their_places(self):
        self.add("framework/runtime", "runtime", ["@openmpi//:mpi"], executor_cc=["<mpi.h>", "<cuda_runtime.h>"])
        self.add("framework/comm", "mpi", ["@openmpi//:mpi"], mpi_communicator_cc=["<mpi.h>"])
        self.assertEqual(self.violations(), [
            'framework/runtime/executor.cc:1: includes "mpi.h": MPI stays in framework/comm',
            'framework/runtime/executor.cc:2: includes "cuda_runtime.h": CUDA stays in folders of the name cuda'])

    def test_a_header_that_leaves_out_a_part_of_its_path(self):
        self.add("zero", "zero")
        (self.root / "zero/short").mkdir()
        (self.root / "zero/short/short.h").write_text("")
        (self.root / "zero/BUILD.bazel").write_text(
            'cc_library(name = "short", hdrs = ["short/short.h"], strip_include_prefix = "/zero")\n')
        self.add("models", "demo", main_cc=['"short/short.h"'])
        self.assertEqual(self.violations(), [
            'models/main.cc:1: includes "zero/short/short.h": //models:demo needs //zero:short in its deps'])

    def test_files_without_a_target(self):
        self.add("framework/base", "status", status_cc=['"framework/base/lost.h"'])
        (self.root / "framework/base/lost.h").write_text("")
        self.assertEqual(self.violations(), [
            "framework/base/lost.h: no target has this file",
            'framework/base/status.cc:1: includes "framework/base/lost.h": no target has the included file'])

    def test_rules_in_macros_with_selects_and_globs(self):
        self.add("framework/base", "base", status_h=[])
        (self.root / "framework/rules.bzl").write_text(
            'load("@rules_cc//cc:defs.bzl", "cc_library")\n'
            "def library(name, deps):\n"
            '    cc_library(name = name, hdrs = native.glob(["**/*.h"]), deps = deps + select({\n'
            '        str(Label("//framework:gpu")): ["//framework/base"], "//conditions:default": []}))\n')
        (self.root / "framework/ir/deep").mkdir(parents=True)
        (self.root / "framework/ir/deep/graph.h").write_text('#include "framework/base/status.h"\n')
        build = self.root / "framework/ir/BUILD.bazel"
        start = 'load("//framework:rules.bzl", "library")\nload("@cuda//:cuda.bzl", "if_cuda")\n'
        build.write_text(start + '[library(name = "ir", deps = []) for _ in if_cuda(["a toolkit"])]\n')
        self.assertEqual(self.violations(), [])

    def test_an_empty_tree_is_an_error(self):
        self.assertEqual(self.violations(), ["no C++ files found"])


unittest.main()
