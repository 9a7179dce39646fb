"""fuzz_target: code that takes any bytes, for libFuzzer and for replaying what it found.

    load("//tools:fuzz_target.bzl", "fuzz_target")

    fuzz_target(
        name = "graph_text",    # graph_text_fuzz.cc, which defines LLVMFuzzerTestOneInput
        corpus = glob(["corpus/graph_text/*"]),
        deps = [...],
    )

`bazel test //tests/fuzz:graph_text_corpus_test` runs the corpus through it, with any compiler. To
fuzz: `bazel run --config=fuzz //tests/fuzz:graph_text_fuzz -- -max_total_time=600 DIRECTORY`.
"""

load("//tools:cc.bzl", "cc_binary", "cc_library", "cc_test")

def fuzz_target(name, corpus, deps):
    """Declares NAME_fuzz, a manual binary, and NAME_corpus_test.

    Args:
      name: the target; its source is NAME_fuzz.cc.
      corpus: input files, at least one.
      deps: what the source needs.
    """
    if not corpus:
        fail("fuzz_target %s: there is no corpus" % name)
    library = name + "_target"
    cc_library(
        name = library,
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        deps = deps,
        alwayslink = True,  # libFuzzer's main asks for it after the linker has passed it by
    )
    cc_binary(
        name = name + "_fuzz",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],  # needs --config=fuzz
        deps = [":" + library],
    )
    cc_test(
        name = name + "_corpus_test",
        size = "small",
        srcs = ["corpus_main.cc"],
        args = ["$(rootpath %s)" % file for file in corpus],
        data = corpus,
        deps = [":" + library],
    )
