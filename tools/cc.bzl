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
_OPTIMIZE = ["-O3"]

# Tests, and the packages below: their compile time counts, as most run for less than that.
_OPTIMIZE_LITTLE = ["-Og"]

_COLD_PACKAGES = [
    "framework/job",
    "framework/nn",
    "framework/ops",
    "framework/optim",
    "framework/plan",
    "framework/train",
    "models",
    "tools",
]

def _is_cold(package):
    return any([package == cold or package.startswith(cold + "/") for cold in _COLD_PACKAGES])

# --config=werror. The exceptions are the ones that GCC 12 reports wrongly inside inlined standard
# library code at -O3, and precompiled headers that cannot be used: a library that is built by itself is
# compiled a second time, as code for a fixed address, which they are not for.
_WARNINGS_ARE_ERRORS = select({
    str(Label("//tools:werror")): [
        "-Werror",
        "-Winvalid-pch",
        "-Wno-error=array-bounds",
        "-Wno-error=invalid-pch",
        "-Wno-error=maybe-uninitialized",
        "-Wno-error=restrict",
        "-Wno-error=stringop-overflow",
    ],
    "//conditions:default": [],
})

# GCC would look for garbage in nearly every source, as the headers alone take the 128 MB at which it
# begins; so it begins at 512 MB (in kB).
_FEW_GARBAGE_COLLECTIONS = select({
    str(Label("//tools:clang")): [],
    "//conditions:default": ["--param=ggc-min-heapsize=524288"],
})

# No fused multiply-add unless the source asks for one: the compiler would contract a*b+c in one loop
# and not in another (vector body against scalar tail, one file against the next), and results would
# stop being bit-identical across ZeRO stages and numbers of ranks.
#
# //tools:cuda.bzl gives these to the host compiler of nvcc too.
_COMMON = [
    "-Wall",
    "-Wextra",
    "-ffp-contract=off",
] + _WARNINGS_ARE_ERRORS + _FEW_GARBAGE_COLLECTIONS

_CXXOPTS = ["-std=c++17"]

# dbg: no optimisation, and no prelude, so that each source is seen to include what it uses.
def _unless_dbg(values):
    return select({str(Label("//tools:dbg")): [], "//conditions:default": values})

# What launches kernels has little to do itself.
CUDA_HOST_COPTS = _unless_dbg(_OPTIMIZE_LITTLE) + _COMMON

# The flags of precompiled headers must be those of the sources that use them.
PRELUDE_COPTS = _unless_dbg(_OPTIMIZE) + _COMMON + _CXXOPTS
COLD_PRELUDE_COPTS = _unless_dbg(_OPTIMIZE_LITTLE) + _COMMON + _CXXOPTS

_DEFAULT = "default"

def _compile(rule, name, is_test, is_cold = False, prelude = _DEFAULT, copts = [], deps = [], **kwargs):
    if is_test and any([dep.startswith("@googletest//") for dep in deps]):
        optimize, usual_prelude = _OPTIMIZE_LITTLE, "test_prelude"
    elif is_test or is_cold or _is_cold(native.package_name()):
        optimize, usual_prelude = _OPTIMIZE_LITTLE, "cold_prelude"
    else:
        optimize, usual_prelude = _OPTIMIZE, "prelude"
    if prelude == _DEFAULT:
        prelude = str(Label("//tools/prelude:" + usual_prelude))
    include, header = [], []
    if prelude:
        include = _unless_dbg(["-include", prelude.split(":")[1] + ".h"])
        header = _unless_dbg([prelude])
    rule(
        name = name,
        copts = _unless_dbg(optimize) + include + _COMMON + _CXXOPTS + copts,
        deps = deps + header,
        **kwargs
    )

# Beside the attributes of the rules: `is_cold`: as in the packages above. `prelude`: a precompiled
# header with the flags in `copts`, or None; needed if those generate other code, for which the usual
# one cannot be used. Flags in `copts` come after the project's.

def cc_library(name, testonly = False, **kwargs):
    """A cc_library with the project's flags."""
    _compile(
        _cc_library,
        name,
        is_test = testonly,
        testonly = testonly,
        linkstatic = True,  # as an archive only
        **kwargs
    )

def cc_binary(name, **kwargs):
    """A cc_binary with the project's flags."""
    _compile(_cc_binary, name, is_test = False, **kwargs)

def cc_test(name, **kwargs):
    """A cc_test with the project's flags."""
    _compile(_cc_test, name, is_test = True, **kwargs)
