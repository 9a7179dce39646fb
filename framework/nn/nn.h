// Everything to write a model with: modules, functions, losses and the graph.
#pragma once

#include "framework/nn/activation.h"
#include "framework/nn/causal_self_attention.h"
#include "framework/nn/dropout.h"
#include "framework/nn/embedding.h"
#include "framework/nn/functions.h"
#include "framework/nn/graph.h"
#include "framework/nn/layer_norm.h"
#include "framework/nn/linear.h"
#include "framework/nn/losses.h"
#include "framework/nn/module.h"
#include "framework/nn/module_list.h"
#include "framework/nn/parameter.h"
#include "framework/nn/sequential.h"
