"""The op suite, for the ops of this project and of those that use it.

    load("@zerograph//tests/ops:op_suite.bzl", "op_suite_test")

    op_suite_test(
        name = "my_ops_test",
        srcs = ["my_op_cases.cc"],
        deps = [":my_op"],
    )

A source, or a dependency with `alwayslink`, defines RegisterOpsUnderTest() and FamiliesUnderTest()
(tests/ops/op_suite.h).
"""

load("//tools:cc.bzl", "cc_test")

def op_suite_test(name, deps, srcs = [], size = "small", **kwargs):
    """Checks each op that RegisterOpsUnderTest() registers on its cases."""
    cc_test(
        name = name,
        size = size,
        srcs = srcs,
        deps = deps + [
            str(Label("//tests/ops:op_checks")),
            str(Label("//tests/ops:op_suite")),
            str(Label("@googletest//:gtest_main")),
        ],
        **kwargs
    )
