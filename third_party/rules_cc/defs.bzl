"""Stands in for @rules_cc: Bazel 4's own C++ rules under the names that later versions load.

Debian's rules_cc package needs a newer Bazel than Debian's.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
