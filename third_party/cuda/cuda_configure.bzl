"""cuda_configure: the repository @cuda, made from the CUDA toolkit of this machine, if it has one.

Looks in $CUDA_PATH, then /usr/local/cuda; ZG_CUDA=off (--config=cpu) means "as if there were none".

    load("@cuda//:cuda.bzl", "CUDA_AVAILABLE", "if_cuda")

    cc_library(
        name = "nccl_communicator",
        srcs = if_cuda(["nccl_communicator.cc"], ["no_nccl_communicator.cc"]),
        deps = if_cuda(["@cuda//:nccl", "@cuda//:cudart"]),
    )

Without a toolkit @cuda has no libraries, only cuda.bzl.
"""

_CUDA_BZL = """\
# Whether this machine has a CUDA toolkit.
CUDA_AVAILABLE = {available}

# Where the toolkit is; "" without one.
CUDA_PATH = "{path}"

# The architectures from sm_80 on that its compiler knows: "80", "90", ...
CUDA_ARCHS = {archs}

def if_cuda(yes, no = []):
    \"\"\"`yes` where a CUDA toolkit is installed, `no` elsewhere.\"\"\"
    return yes if CUDA_AVAILABLE else no

def if_nccl(yes, no = []):
    \"\"\"`yes` where the toolkit has NCCL, `no` elsewhere.\"\"\"
    return yes if {has_nccl} else no
"""

_LIBRARY = """
cc_library(
    name = "{name}",
    linkopts = [
        "-L{lib_dir}",
        "-Wl,-rpath,{lib_dir}",
        "-l{link}",
    ],
    deps = [":headers"],
)
"""

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

# So that another toolkit under the same path compiles everything again.
filegroup(
    name = "nvcc",
    srcs = ["toolkit/bin/nvcc"],
)

# Without the headers of CCCL's libraries (CUB, Thrust, libcu++), which are nine tenths of all and
# would be made readable to each compilation.
cc_library(
    name = "headers",
    hdrs = glob(
        ["toolkit/include/**"],
        exclude = [
            "toolkit/include/cccl/cub/**",
            "toolkit/include/cccl/cuda/**",
            "toolkit/include/cccl/thrust/**",
        ],
    ),
    includes = [
        "toolkit/include",
        "toolkit/include/cccl",
    ],
)

# With them, for kernels of one's own.
cc_library(
    name = "cccl",
    hdrs = glob(["toolkit/include/cccl/**"]),
    deps = [":headers"],
)
"""

# Target name to library name; a target exists where the library does.
_LIBRARIES = {
    "cublaslt": "cublasLt",
    "cudart": "cudart",
    "nccl": "nccl",
}

def _find_toolkit(ctx):
    """The toolkit's directory, or None. A CUDA_PATH that is set and wrong is an error."""
    if ctx.os.environ.get("ZG_CUDA", "") == "off":
        return None
    requested = ctx.os.environ.get("CUDA_PATH", "")
    toolkit = ctx.path(requested or "/usr/local/cuda")
    if toolkit.get_child("bin").get_child("nvcc").exists:
        return toolkit
    if requested:
        fail("CUDA_PATH is %s, but %s/bin/nvcc does not exist; unset it to build without CUDA" %
             (requested, requested))
    return None

def _find_library_dir(toolkit, library):
    for name in ["lib64", "lib"]:
        directory = toolkit.get_child(name)
        if directory.get_child("lib%s.so" % library).exists:
            return directory
    return None

def _find_archs(ctx, toolkit):
    """What nvcc can make code for, from sm_80 on."""
    listed = ctx.execute([toolkit.get_child("bin").get_child("nvcc"), "--list-gpu-code"])
    if listed.return_code != 0:
        fail("%s/bin/nvcc --list-gpu-code: %s" % (toolkit, listed.stderr))
    archs = [line[len("sm_"):] for line in listed.stdout.splitlines() if line.startswith("sm_")]
    return [arch for arch in archs if len(arch) > 2 or arch >= "80"]

def _cuda_configure_impl(ctx):
    toolkit = _find_toolkit(ctx)
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("cuda.bzl", _CUDA_BZL.format(
        available = toolkit != None,
        has_nccl = toolkit != None and _find_library_dir(toolkit, "nccl") != None,
        path = toolkit or "",
        archs = _find_archs(ctx, toolkit) if toolkit else [],
    ))
    build = ""
    if toolkit:
        ctx.symlink(toolkit, "toolkit")
        build = _BUILD
        for name, library in _LIBRARIES.items():
            lib_dir = _find_library_dir(toolkit, library)
            if lib_dir:
                build += _LIBRARY.format(name = name, link = library, lib_dir = lib_dir)
    ctx.file("BUILD.bazel", build)

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_PATH", "ZG_CUDA"],
    local = True,
)
