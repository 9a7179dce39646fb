"""cc_library, cc_binary and cc_test with the compile flags of every C++ file of the project.

    load("//tools:cc.bzl", "cc_library")

The flags stand here, not in .bazelrc, so that a workspace that has this one as an external
repository compiles the same code: no less fast, and with the same bits in its results.
"""

load(
    "@rules_cc//cc:defs.bzl",
    _cc_binary = "cc_binary",
    _cc_library = "cc_library",
    _cc_test = "cc_test",
)

# Optimised in every compilation mode but dbg: a slow program must never be a forgotten flag.
_OPTIMIZE = select({
    str(Label("//tools:dbg")): [],
    "//conditions:default": ["-O3"],
})

# --config=werror. The exceptions are the ones that GCC 12 reports wrongly inside inlined standard
# library code at -O3.
_WARNINGS_ARE_ERRORS = select({
    str(Label("//tools:werror")): [
        "-Werror",
        "-Wno-error=array-bounds",
        "-Wno-error=maybe-uninitialized",
        "-Wno-error=restrict",
        "-Wno-error=stringop-overflow",
    ],
    "//conditions:default": [],
})

# No fused multiply-add unless the source asks for one: the compiler would contract a*b+c in one loop
# and not in another (vector body against scalar tail, one file against the next), and results would
# stop being bit-identical across ZeRO stages and numbers of ranks.
#
# //tools:cuda.bzl gives these to the host compiler of nvcc too.
COPTS = _OPTIMIZE + [
    "-Wall",
    "-Wextra",
    "-ffp-contract=off",
] + _WARNINGS_ARE_ERRORS

_CXXOPTS = ["-std=c++17"]

def cc_library(name, copts = [], **kwargs):
    """A cc_library with the project's flags; those in `copts` come after them."""
    _cc_library(name = name, copts = COPTS + _CXXOPTS + copts, **kwargs)

def cc_binary(name, copts = [], **kwargs):
    """A cc_binary with the project's flags; those in `copts` come after them."""
    _cc_binary(name = name, copts = COPTS + _CXXOPTS + copts, **kwargs)

def cc_test(name, copts = [], **kwargs):
    """A cc_test with the project's flags; those in `copts` come after them."""
    _cc_test(name = name, copts = COPTS + _CXXOPTS + copts, **kwargs)
