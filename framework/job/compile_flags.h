// The flags of the compiler, one line per field of CompileOptions. Every program that compiles has
// them.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/flag_parser.h"
#include "framework/passes/compile_options.h"

namespace zg {

// `options` holds the defaults and receives the values.
void AddCompileFlags(FlagParser* flags, CompileOptions* options);

// These flags with the values that `options` has.
std::vector<ResolvedFlag> CompileFlagsOf(CompileOptions options);

// Returns `options`, overridden by those of these flags that were given.
CompileOptions WithGivenCompileFlags(const FlagParser& flags, CompileOptions options);

// Those of these flags that were given, as on the command line.
std::string GivenCompileFlags(const FlagParser& flags);

// Sets the number of ranks from a mesh on the command line, unless --ranks was given.
void TakeRanksOfMesh(const FlagParser& flags, const CompileOptions& options, int* ranks);

// Fills in the micro-batches of a step for `num_ranks`. Errors, by flag name: flags that exclude
// each other or do not fit the number of ranks; a mesh with another number of ranks.
Status ResolveCompileFlags(const FlagParser& flags, int num_ranks, CompileOptions* options);

}  // namespace zg
