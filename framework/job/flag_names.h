// The flags of settings. Below the job, where a program may have set them in C++ as well, errors
// quote a setting by the name of its field, perhaps with a value: `save_async`, `device=cpu`. What
// the job prints names the flag instead: --save-async, --device cpu.
#pragma once

#include <string>
#include <string_view>

namespace zg {

// The flag of a setting, without the dashes; empty: there is none.
std::string_view FlagOf(std::string_view setting);

// The text with every quoted setting that has a flag replaced by it.
std::string WithFlagNames(std::string_view text);

}  // namespace zg
