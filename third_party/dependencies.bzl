"""zerograph_dependencies: the repositories that Zerograph needs, all from Debian packages (tools/setup.sh
installs them); nothing is downloaded. In the WORKSPACE of a project that uses it:

    local_repository(name = "zerograph", path = "../zerograph")

    load("@zerograph//third_party:dependencies.bzl", "zerograph_dependencies")

    zerograph_dependencies()

and in a BUILD file `deps = ["@zerograph//:zerograph"]`. A repository that the WORKSPACE declared before,
such as its own @rules_cc, stays as it is.

A missing package shows up as "repository's path ... does not exist": run tools/setup.sh.
"""

load("//third_party/cuda:cuda_configure.bzl", "cuda_configure")

# Where the package puts the library's headers. Those in /usr/include are on the compiler's own search
# path, so most of the build files, third_party/NAME.BUILD, only add what to link.
_LIBRARIES = {
    "cli11": "/usr/include/CLI",
    "fmt": "/usr/include/fmt",
    "googlebenchmark": "/usr/include/benchmark",
    "googletest": "/usr/include/gtest",
    "highway": "/usr/include/hwy",
    "nlohmann_json": "/usr/include/nlohmann",
    "openmpi": "/usr/lib/x86_64-linux-gnu/openmpi",
    "openssl": "/usr/include/openssl",
    "pcre2": "/usr/share/doc/libpcre2-dev",
    "spdlog": "/usr/include/spdlog",
    "utf8proc": "/usr/share/doc/libutf8proc-dev",
    "zlib": "/usr/share/doc/zlib1g-dev",
}

# Repositories that Bazel itself needs and Debian packages.
_BAZEL_REPOSITORIES = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "platforms": "/usr/share/bazel/tools/platforms",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def _stand_in_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for label, path in ctx.attr.files.items():
        ctx.symlink(label, path)

# A repository whose files lie in ours.
_stand_in = repository_rule(
    implementation = _stand_in_impl,
    attrs = {"files": attr.label_keyed_string_dict(doc = "the path of each file in the repository")},
)

def zerograph_dependencies():
    """Declares what this WORKSPACE has not declared yet."""
    declared = native.existing_rules()

    # Debian's own package of rules_cc needs a newer Bazel than Debian's.
    if "rules_cc" not in declared:
        _stand_in(
            name = "rules_cc",
            files = {
                Label("//third_party/rules_cc:cc.BUILD"): "cc/BUILD.bazel",
                Label("//third_party/rules_cc:defs.bzl"): "cc/defs.bzl",
            },
        )

    # Every test rule refers to it; the real tool is a download and is only needed for coverage.
    if "remote_coverage_tools" not in declared:
        _stand_in(
            name = "remote_coverage_tools",
            files = {Label("//third_party:remote_coverage_tools.BUILD"): "BUILD.bazel"},
        )
    for name, path in _BAZEL_REPOSITORIES.items():
        if name not in declared:
            native.local_repository(name = name, path = path)
    for name, path in _LIBRARIES.items():
        if name not in declared:
            native.new_local_repository(
                name = name,
                build_file = str(Label("//third_party:%s.BUILD" % name)),
                path = path,
            )
    if "cuda" not in declared:
        cuda_configure(name = "cuda")
