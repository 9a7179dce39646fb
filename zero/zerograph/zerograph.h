// Zerograph: all that a program needs, in one header.
//
//   #include "zerograph/zerograph.h"      // deps = ["@zerograph//:zerograph"]
#pragma once

#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/trainer.h"
#include "zero/training_run.h"
