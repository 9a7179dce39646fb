"""precompiled_header: a header that the compiler has read once and for all, with given flags.

GCC takes it where a source is compiled with the same flags (`-include NAME` and, in `deps`, the rule);
elsewhere, and in clang, the same header is read as text.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )

    # Beside each other, as the compiler looks for NAME.gch first where it finds NAME.
    header = ctx.actions.declare_file(ctx.label.name + "/" + ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.files.hdrs[0])
    headers = [header]
    if "gcc" in toolchain.compiler_executable:
        compiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
        flags = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = cc_common.create_compile_variables(
                feature_configuration = features,
                cc_toolchain = toolchain,
                user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            ),
        )
        ctx.actions.run(
            executable = toolchain.compiler_executable,
            arguments = flags + ["-x", "c++-header", "-c", header.path, "-o", compiled.path],
            inputs = depset([header] + ctx.files.hdrs, transitive = [toolchain.all_files]),
            outputs = [compiled],
            env = {"PATH": "/usr/bin:/bin"},
            mnemonic = "CppPrecompile",
            progress_message = "Precompiling %s" % header.short_path,
        )
        headers.append(compiled)
    context = cc_common.create_compilation_context(
        headers = depset(headers),
        quote_includes = depset([header.dirname]),
    )
    return [
        DefaultInfo(files = depset(headers)),
        CcInfo(compilation_context = context),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "hdrs": attr.label_list(mandatory = True, allow_files = [".h"], doc = "the one header"),
        "deps": attr.label_list(providers = [CcInfo], doc = "what the header includes"),
        "copts": attr.string_list(doc = "as the sources have them, in their order"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
