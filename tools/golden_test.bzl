"""golden_test: files of small graphs with what passes make of them (tests/testing/golden.h).

    load("//tools:golden_test.bzl", "golden_test")

    golden_test(
        name = "golden",
        srcs = glob(["*.graph"]),
    )
"""

def golden_test(name, srcs, size = "small", tags = [], **kwargs):
    """Declares one test for all cases of the files.

    Args:
      name: the test.
      srcs: the golden files, at least one.
      size: of the test.
      tags: of the test.
      **kwargs: further attributes of the sh_test.
    """
    if not srcs:
        fail("golden_test %s: there are no golden files" % name)
    runner = str(Label("//tests/testing:golden_runner"))
    native.sh_test(
        name = name,
        size = size,
        srcs = [str(Label("//tools:golden_test.sh"))],
        args = ["$(rootpath %s)" % runner] + ["$(rootpath %s)" % src for src in srcs],
        data = srcs + [runner],
        tags = tags,
        **kwargs
    )
