"""mpi_test: a GoogleTest file that runs under mpirun, once per number of ranks.

    load("//tools:mpi_test.bzl", "mpi_test")

    mpi_test(
        name = "mpi_communicator_test",
        srcs = ["mpi_communicator_test.cc"],
        deps = ["//framework/comm:mpi_communicator"],
    )
"""

load("//tools:cc.bzl", "cc_binary")

def mpi_test(
        name,
        srcs,
        deps = [],
        rank_counts = [1, 2, 3, 4],
        size = "small",
        tags = [],
        args = [],
        data = [],
        **kwargs):
    """Declares one binary and one test per number of ranks.

    Args:
      name: the test suite of all of them; the single ones are NAME_1_rank, NAME_2_ranks, ...
      srcs: the test's sources; GoogleTest, MPI and the main function are added.
      deps: further dependencies.
      rank_counts: numbers of ranks to run with.
      size: of each single test.
      tags: added to "mpi" and the number of processors.
      args: passed to the program.
      data: files that the program reads.
      **kwargs: attributes of the cc_binary, such as copts.
    """
    cc_binary(
        name = name + "_program",
        testonly = True,
        srcs = srcs,
        data = data,
        local_defines = ["OMPI_SKIP_MPICXX"],  # the library of MPI's classes for C++ is not linked
        tags = tags + ["mpi"],
        deps = deps + [
            str(Label("//tests/testing:mpi_main")),
            "@googletest//:gtest",
            "@openmpi//:mpi",
        ],
        **kwargs
    )

    tests = []
    for ranks in rank_counts:
        test = "%s_%d_%s" % (name, ranks, "rank" if ranks == 1 else "ranks")
        tests.append(test)
        native.sh_test(
            name = test,
            size = size,
            srcs = [str(Label("//tools:mpi_test.sh"))],
            args = [str(ranks), "$(rootpath :%s_program)" % name] + args,
            data = [":%s_program" % name],
            # Ranks wait by polling, and yield. A test asks for two processors at most: one that asks for
            # all of a small machine waits until nothing else runs.
            tags = tags + ["mpi", "cpu:%d" % min(ranks, 2)],
        )

    native.test_suite(
        name = name,
        tests = tests,
        tags = [tag for tag in tags if tag == "manual"],
    )
