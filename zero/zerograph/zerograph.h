// Zerograph's public face: all that a program which trains includes, as "zerograph/zerograph.h".
//
//   models       zg::nn::Module, zg::nn::Linear, ..., functions of zg::Var, losses, zg::optim
//   graphs       zg::Graph: train(), eval(), config()
//   programs     zg::Job, zg::train, zg::Training, zg::Trainer
#pragma once

#include "framework/job/console.h"
#include "framework/job/job.h"
#include "framework/nn/nn.h"
#include "framework/optim/optimizer.h"
#include "framework/optim/schedule.h"
#include "framework/train/trainer.h"
#include "framework/train/training.h"
#include "zero/zerograph/make_trainer.h"
#include "zero/zerograph/train.h"
