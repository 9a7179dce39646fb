"""The layers of the project, and who may use which: the one list of them.

    load("//framework:layers.bzl", "visible_above")

    package(default_visibility = visible_above("framework/ir"))

Bazel holds targets to it through visibility, .ci/check_layers.py (plain Python, which reads this
file too) every #include.
"""

# From the bottom to the top: a layer may use itself and the layers before it.
LAYERS = [
    "framework/base",
    "framework/tensor",
    "framework/ir",
    "framework/ops",
    "framework/passes",
    "framework/device",
    "framework/io",
    "framework/text",
    "framework/comm",
    "framework/kernels",
    "framework/runtime",
    "framework/state",
    "framework/optim",
    "framework/nn",
    "framework/eager",
    "framework/data",
    "framework/job",
    "framework/train",
    "framework/plan",
    "zero",
    "zero/zerograph",
    "models",
    "tools",
    "tests",
]

# The compiler, and the models and update rules that it compiles, must not depend on the runtime that
# executes its programs.
COMPILER = [
    "framework/ir",
    "framework/ops",
    "framework/passes",
    "framework/optim",
    "framework/nn",
    "zero",
]
EXECUTION = [
    "framework/comm",
    "framework/device",
    "framework/job",
    "framework/kernels",
    "framework/runtime",
    "framework/state",
    "framework/train",
]

def may_use(user, used):
    """Whether the layer `user` may use the layer `used`."""
    return (
        LAYERS.index(user) >= LAYERS.index(used) and
        not (user in COMPILER and used in EXECUTION)
    )

def visible_above(layer):
    """The visibility of a package of `layer`: the layers that may use it, and the top package."""
    if layer not in LAYERS:
        fail("%s is not among the layers in framework/layers.bzl" % layer)
    users = [user for user in LAYERS if may_use(user, layer)]
    return ["//:__pkg__"] + ["//%s:__subpackages__" % user for user in users]
