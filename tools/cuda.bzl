"""cuda_library: CUDA sources, compiled by the toolkit's nvcc into a library for cc_* rules.

    load("@cuda//:cuda.bzl", "if_cuda")
    load("//tools:cuda.bzl", "cuda_library")

    cuda_library(
        name = "left_fold_cuda",
        srcs = ["left_fold_cuda.cu"],
        hdrs = ["left_fold_cuda.h"],
        deps = ["//framework/base:status", "@cuda//:cudart"],
    )

    cc_library(
        name = "nccl",
        deps = if_cuda([":left_fold_cuda"]),
        ...
    )

Sources that only call CUDA may be .cc files. Without a toolkit it declares nothing: depend on it
through if_cuda.

Machine code is made for the architectures of --define cuda_archs=80,90 (the default; "all" is what
the toolkit knows from sm_80 on). It comes from one PTX, that of the oldest of them, which is in the
object too, for GPUs that none of them is for: reading the source once for all takes the least time.
A source may use what a later GPU has only under an architecture with a letter, such as 90a, which
gets PTX of its own.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:cuda.bzl", "CUDA_ARCHS", "CUDA_AVAILABLE", "CUDA_PATH")
load("//tools:cc.bzl", "CUDA_HOST_COPTS")

_DEFAULT_ARCHS = "80,90"

def _gencode_flags(requested):
    archs = CUDA_ARCHS if requested == "all" else requested.split(",")
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (arch, arch) for arch in archs if not arch.isdigit()]
    common = [arch for arch in archs if arch.isdigit()]
    if common:
        oldest = min([int(arch) for arch in common])
        codes = ["sm_" + arch for arch in common] + ["compute_%d" % oldest]
        flags.append("-gencode=arch=compute_%d,code=[%s]" % (oldest, ",".join(codes)))
    return flags

def _compile(ctx, source, context):
    object = ctx.actions.declare_file("_objs/%s/%s.o" % (ctx.label.name, source.basename))
    args = ctx.actions.args()
    args.add_all(["-c", source, "-o", object, "-O3", "-std=c++17"])

    # nvcc names its temporary files by process, and sandboxes that share /tmp have the same numbers.
    args.add("--objdir-as-tempdir")
    archs = ctx.attr.archs_of_sources.get(source.basename, ctx.var.get("cuda_archs", _DEFAULT_ARCHS))
    args.add_all(_gencode_flags(archs))

    for flag in ctx.attr.host_copts + ctx.fragments.cpp.copts + ["-fPIC"]:
        args.add("-Xcompiler", flag)
    args.add_all(ctx.attr.copts)
    args.add_all(context.defines, before_each = "-D")
    args.add_all(context.quote_includes, before_each = "-I")
    args.add_all(context.includes, before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    args.add("-I.")
    ctx.actions.run(
        executable = CUDA_PATH + "/bin/nvcc",
        arguments = [args],
        inputs = depset(ctx.files.srcs + ctx.files.hdrs + ctx.files._nvcc, transitive = [context.headers]),
        outputs = [object],
        env = {"PATH": "/usr/bin:/bin"},  # where nvcc looks for g++
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % source.short_path,
    )
    return object

def _cuda_library_impl(ctx):
    deps = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    objects = depset([
        _compile(ctx, source, deps.compilation_context)
        for source in ctx.files.srcs
        if source.extension in ["cu", "cc"]
    ])
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = objects,
            pic_objects = objects,
        ),
        linking_contexts = [deps.linking_context],
        disallow_dynamic_library = True,
    )
    own = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs))
    return [
        DefaultInfo(files = objects),
        CcInfo(
            compilation_context = cc_common.merge_cc_infos(
                cc_infos = [CcInfo(compilation_context = own), deps],
            ).compilation_context,
            linking_context = linking_context,
        ),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cc", ".cuh", ".h"]),
        "hdrs": attr.label_list(allow_files = [".cuh", ".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(doc = "for nvcc itself, such as -fmad=false"),
        "archs_of_sources": attr.string_dict(
            doc = "instead of --define cuda_archs, for sources of these names: instructions that only one GPU has",
        ),
        "host_copts": attr.string_list(doc = "for the host's compiler"),
        "_nvcc": attr.label(default = "@cuda//:nvcc", allow_files = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def cuda_library(name, **kwargs):
    """Declares the library; nothing where there is no toolkit."""
    if CUDA_AVAILABLE:
        _cuda_library(name = name, host_copts = CUDA_HOST_COPTS, **kwargs)
