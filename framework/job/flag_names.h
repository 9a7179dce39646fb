// The flags of settings. Code below the job, where a program may also have set values in C++,
// quotes a setting in errors by the name of its field, optionally with a value: `save_async`,
// `device=cpu`. The job prints the flag instead: --save-async, --device cpu.
#pragma once

#include <string>
#include <string_view>

namespace zg {

// The flag of a setting, without the dashes; empty if there is none.
std::string_view FlagOf(std::string_view setting);

// The text with every quoted setting that has a flag replaced by it.
std::string WithFlagNames(std::string_view text);

}  // namespace zg
