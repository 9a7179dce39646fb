// Quoted strings of the text form: `"layer \"a\""`.
#pragma once

#include <string>
#include <string_view>

namespace zg {

// In double quotes; quotes, backslashes and control characters are escaped (\", \\, \n, \t, \x1b).
std::string Quote(std::string_view text);

// Letters, digits, `_` and `.`: the characters of a name that needs no quotes.
bool IsNameCharacter(char c);
bool IsPlainName(std::string_view text);  // and not empty

}  // namespace zg
