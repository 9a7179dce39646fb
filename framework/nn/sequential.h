// Sequential: modules of any types, each applied to the result of the previous one; named by their
// index.
//
//   Sequential layers{this, "layers"};
//   layers.add<Linear>(256, 128);  // "layers.0"
//   layers.add<ReLU>();            // "layers.1"
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/list_index.h"
#include "framework/nn/module.h"

namespace zg::nn {

class Sequential : public Module {
 public:
  using Module::Module;

  // Appends T(this, index, args...).
  template <typename T, typename... Args>
  T& add(Args&&... args) {
    auto item =
        std::make_unique<T>(this, std::to_string(items_.size()), std::forward<Args>(args)...);
    T& added = *item;
    items_.push_back(std::move(item));
    return added;
  }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  // Ends the process with an error if there is no such module.
  Module& operator[](int64_t i) { return *items_[CheckedIndex(*this, i, size())]; }

  Var forward(Var x) override {
    for (const auto& item : items_) x = (*item)(x);
    return x;
  }

 private:
  std::vector<std::unique_ptr<Module>> items_;
};

}  // namespace zg::nn
