// ModuleList: modules of one type, named by their index ("blocks.0", "blocks.1", ...).
//
//   ModuleList<Block> blocks{this, "blocks", 12, channels, heads};  // 12 x Block
//   for (Block& block : blocks) x = block(x);
#pragma once

#include <deque>
#include <string>

#include "framework/nn/list_index.h"
#include "framework/nn/module.h"

namespace zg::nn {

template <typename T>
class ModuleList : public Module {
 public:
  // Creates an empty list, for modules that differ (emplace_back).
  ModuleList(const Module* parent, const std::string& name) : Module(parent, name) {}

  // Creates `count` modules T(this, index, args...).
  template <typename... Args>
  ModuleList(const Module* parent, const std::string& name, int64_t count, const Args&... args)
      : Module(parent, name) {
    for (int64_t i = 0; i < count; ++i) emplace_back(args...);
  }

  template <typename... Args>
  T& emplace_back(Args&&... args) {
    return items_.emplace_back(this, std::to_string(items_.size()), std::forward<Args>(args)...);
  }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  // Ends the process with an error if there is no such module.
  T& operator[](int64_t i) { return items_[CheckedIndex(*this, i, size())]; }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  std::deque<T> items_;  // a deque, because modules must not move
};

}  // namespace zg::nn
