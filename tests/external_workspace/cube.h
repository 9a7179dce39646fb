// An op of this project: cube, y = x^3, with its gradient and its kernels for the CPU.
#pragma once

#include "zerograph/zerograph.h"

// Must be called once, before a graph is traced.
void RegisterCube();

zg::Var cube(zg::Var x);
