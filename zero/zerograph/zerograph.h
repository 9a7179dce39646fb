// The public API of Zerograph: the one header that a training program includes, as
// "zerograph/zerograph.h".
//
//   models       zg::nn::Module, zg::nn::Linear, ..., functions of zg::Var, losses, zg::optim
//   graphs       zg::Graph: train(), eval(), config()
//   eager         zg::Eager, zg::Tensor
//   programs     zg::Job, zg::train, zg::Training, zg::Trainer
//   data         zg::SampleOrder, zg::DataLoader, zg::RecordFile, zg::read_idx_file
//   texts        zg::Generator, zg::Sampler, zg::Tokenizer, zg::TextEncoder
//   adapters     zg::nn::Lora, zg::save_lora, zg::load_lora
//
// Names: types, and named values such as zg::Sbp::S(0) and zg::Status::Ok(), are PascalCase;
// functions that a program calls are snake_case. The framework's own functions below this header
// are PascalCase.
#pragma once

#include "framework/data/data_loader.h"
#include "framework/data/record_file.h"
#include "framework/data/sample_order.h"
#include "framework/eager/eager.h"
#include "framework/io/idx_file.h"
#include "framework/job/console.h"
#include "framework/job/job.h"
#include "framework/nn/nn.h"
#include "framework/optim/optimizer.h"
#include "framework/optim/schedule.h"
#include "framework/text/sampler.h"
#include "framework/text/tokenizer.h"
#include "framework/train/generator.h"
#include "framework/train/lora_files.h"
#include "framework/train/trainer.h"
#include "framework/train/training.h"
#include "zero/zerograph/make_trainer.h"
#include "zero/zerograph/train.h"
