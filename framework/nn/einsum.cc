#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
#include "framework/nn/products.h"
#include "framework/nn/reductions.h"
#include "framework/nn/shapes.h"

namespace zg {
namespace {

bool Has(std::string_view letters, char letter) { return letters.find(letter) != letters.npos; }

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The letters of `letters` for which `wanted` holds, in their order.
template <typename Wanted>
std::string Letters(std::string_view letters, const Wanted& wanted) {
  std::string result;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(result), wanted);
  return result;
}

int64_t ProductOf(const Dims& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

// A tensor, with a letter for each of its dims.
struct Operand {
  Var x;
  std::string letters;

  int64_t SizeOf(char letter) const { return x.dim(static_cast<int>(letters.find(letter))); }
  Dims SizesOf(std::string_view some) const {
    Dims sizes;
    for (const char letter : some) sizes.push_back(SizeOf(letter));
    return sizes;
  }

  // Its dims in another order.
  Var Ordered(std::string_view order) const {
    Dims dims;
    for (const char letter : order) dims.push_back(static_cast<int64_t>(letters.find(letter)));
    return permute(x, dims);
  }

  // Sums over the dims that neither another operand nor the result has.
  void SumAlone(std::string_view other, std::string_view y) {
    Dims alone;
    for (size_t i = 0; i < letters.size(); ++i) {
      if (!Has(other, letters[i]) && !Has(y, letters[i])) alone.push_back(static_cast<int64_t>(i));
    }
    if (alone.empty()) return;
    letters = Letters(letters, [&](char c) { return Has(other, c) || Has(y, c); });
    x = sum(x, alone);
  }

  // A letter that two dims have stays once, for their diagonal, at the end.
  void TakeDiagonals() {
    for (size_t i = 0; i < letters.size();) {
      const char letter = letters[i];
      const size_t other = letters.find(letter, i + 1);
      if (other == letters.npos) {
        ++i;
        continue;
      }
      x = diagonal(
          movedim(movedim(x, static_cast<int64_t>(other), -1), static_cast<int64_t>(i), -1));
      letters = Letters(letters, [&](char c) { return c != letter; }) + letter;
    }
  }

  // Without a dim of size 1.
  void Drop(char letter) {
    x = squeeze(x, static_cast<int64_t>(letters.find(letter)));
    letters = Letters(letters, [&](char c) { return c != letter; });
  }
};

class Equation {
 public:
  // Names the dims of the operands and of the result, of which "..." stands for any number.
  static StatusOr<Equation> Parse(std::string_view text, const std::vector<Var>& operands) {
    Equation equation(text, operands);
    const std::string terms = Letters(text, [](char c) { return c != ' '; });
    const size_t arrow = terms.find("->");
    std::vector<std::string> names;
    for (size_t begin = 0, end = 0; end != terms.npos && begin <= arrow; begin = end + 1) {
      end = terms.find(',', begin);
      names.push_back(terms.substr(begin, std::min(end, arrow) - begin));
    }
    if (names.size() != operands.size()) {
      return equation.Error(fmt::format("it names {}", names.size()));
    }
    ZG_RETURN_IF_ERROR(equation.NameOperands(names));
    ZG_RETURN_IF_ERROR(equation.CheckSizes());
    ZG_RETURN_IF_ERROR(arrow == terms.npos ? equation.InferResult()
                                           : equation.NameResult(terms.substr(arrow + 2)));
    for (Operand& operand : equation.operands) operand.TakeDiagonals();
    return equation;
  }

  std::vector<Operand> operands;
  std::string result;

 private:
  Equation(std::string_view text, const std::vector<Var>& vars) : text_(text), vars_(vars) {}

  Status Error(std::string_view problem) const {
    std::vector<std::string> names;
    for (const Var& var : vars_) {
      names.push_back(fmt::format("%{} {}", var.value()->name, var.value()->type.ToString()));
    }
    return InvalidArgument(
        "einsum '{}' of {}: {}, expected a letter for each dim, as in 'bij,bjk->bik', or '...' for "
        "some of them",
        text_, fmt::join(names, " and "), problem);
  }

  // `term` with letters in place of "...", the last `count` of those that stand for it.
  StatusOr<std::string> WithoutDots(const std::string& term, int64_t count) const {
    const size_t dots = term.find(kDots);
    std::string letters = term;
    if (dots != term.npos) {
      letters = term.substr(0, dots) + dotted_.substr(dotted_.size() - count) +
                term.substr(dots + kDots.size());
    }
    const auto other = std::find_if_not(letters.begin(), letters.end(), IsLetter);
    if (other != letters.end()) return Error(fmt::format("got '{}'", *other));
    return letters;
  }

  Status NameOperands(const std::vector<std::string>& names) {
    std::vector<int64_t> num_dotted;
    for (size_t i = 0; i < names.size(); ++i) {
      const bool has_dots = names[i].find(kDots) != std::string::npos;
      const auto num_named = static_cast<int64_t>(names[i].size() - (has_dots ? kDots.size() : 0));
      const int64_t dotted = vars_[i].shape().num_dims() - num_named;
      if (dotted < 0 || (dotted > 0 && !has_dots)) return Error("the numbers of dims differ");
      num_dotted.push_back(dotted);
    }
    const int64_t most = *std::max_element(num_dotted.begin(), num_dotted.end());
    for (char c = 'A'; static_cast<int64_t>(dotted_.size()) < most; c = c == 'Z' ? 'a' : c + 1) {
      if (!Has(text_, c)) dotted_ += c;  // a tensor has few dims: there are enough letters
    }
    for (size_t i = 0; i < names.size(); ++i) {
      ZG_ASSIGN_OR_RETURN(std::string letters, WithoutDots(names[i], num_dotted[i]));
      operands.push_back({vars_[i], std::move(letters)});
    }
    return Status::Ok();
  }

  // Dims of one letter have one size, or are 1 and broadcast.
  Status CheckSizes() {
    std::map<char, int64_t> sizes;
    for (Operand& operand : operands) {
      for (size_t i = 0; i < operand.letters.size(); ++i) {
        const char letter = operand.letters[i];
        const int64_t own = operand.x.dim(static_cast<int>(i));
        const auto [known, is_new] = sizes.emplace(letter, own);
        if (is_new || known->second == own) continue;
        const bool is_diagonal = operand.letters.find(letter) != operand.letters.rfind(letter);
        const bool repeats = !is_diagonal && (own == 1 || known->second == 1);
        if (!repeats) return Error(fmt::format("'{}' is {} and {}", letter, known->second, own));
        known->second = std::max(known->second, own);
      }
    }
    for (Operand& operand : operands) {
      for (const char letter : std::string(operand.letters)) {
        if (operand.SizeOf(letter) == 1 && sizes.at(letter) > 1) operand.Drop(letter);
      }
    }
    return Status::Ok();
  }

  Status NameResult(const std::string& term) {
    ZG_ASSIGN_OR_RETURN(result, WithoutDots(term, static_cast<int64_t>(dotted_.size())));
    for (const char letter : result) {
      if (std::count(result.begin(), result.end(), letter) > 1) {
        return Error(fmt::format("'{}' names two dims of the result", letter));
      }
      const bool is_known = std::any_of(operands.begin(), operands.end(), [&](const Operand& one) {
        return Has(one.letters, letter);
      });
      if (!is_known) return Error(fmt::format("no operand has '{}'", letter));
    }
    return Status::Ok();
  }

  // The dims of "...", then the letters that occur once, in the order of the alphabet.
  Status InferResult() {
    std::map<char, int> counts;
    for (const Operand& operand : operands) {
      for (const char letter : operand.letters) ++counts[letter];
    }
    result = dotted_;
    for (const auto& [letter, count] : counts) {
      if (count == 1 && !Has(dotted_, letter)) result += letter;
    }
    return Status::Ok();
  }

  static constexpr std::string_view kDots = "...";

  const std::string text_;
  const std::vector<Var> vars_;
  std::string dotted_;  // letters for the dims of "..."
};

// The sums of products of two operands, as a product of matrices for each index of the dims that both
// and the result have.
Operand Contract(Operand left, Operand right, const std::string& y) {
  left.SumAlone(right.letters, y);
  right.SumAlone(left.letters, y);
  const auto in_both = [&](char c) { return Has(left.letters, c) && Has(right.letters, c); };
  const std::string batch = Letters(y, in_both);
  const std::string summed =
      Letters(left.letters, [&](char c) { return in_both(c) && !Has(y, c); });
  const std::string rows = Letters(left.letters, [&](char c) { return !in_both(c); });
  const std::string columns = Letters(right.letters, [&](char c) { return !in_both(c); });
  const Dims row_sizes = left.SizesOf(rows), column_sizes = right.SizesOf(columns);
  const int64_t depth = ProductOf(left.SizesOf(summed));
  Dims of_a = left.SizesOf(batch), of_b = of_a, of_y = of_a;
  of_a.insert(of_a.end(), {ProductOf(row_sizes), depth});
  of_b.insert(of_b.end(), {depth, ProductOf(column_sizes)});
  of_y.insert(of_y.end(), row_sizes.begin(), row_sizes.end());
  of_y.insert(of_y.end(), column_sizes.begin(), column_sizes.end());
  const Var product =
      nn::append("matmul", {reshape(left.Ordered(batch + rows + summed), of_a),
                            reshape(right.Ordered(batch + summed + columns), of_b)});
  const Operand whole = {reshape(product, of_y), batch + rows + columns};
  return {whole.Ordered(y), y};
}

}  // namespace

Var einsum(std::string_view text, Var a, Var b) { return einsum(text, std::vector<Var>{a, b}); }

Var einsum(std::string_view text, const std::vector<Var>& operands) {
  if (operands.empty()) {
    return nn::Trace::Of("einsum").Fail(InvalidArgument("einsum '{}': got no operands", text));
  }
  return nn::Checked("einsum", operands[0], [&]() -> StatusOr<Var> {
    for (const Var& operand : operands) {
      ZG_RETURN_IF_ERROR(nn::Trace::Of("einsum").CheckUsable(operand).WithContext("einsum"));
    }
    ZG_ASSIGN_OR_RETURN(Equation equation, Equation::Parse(text, operands));
    Operand product = equation.operands[0];
    if (operands.size() == 1) {
      product.SumAlone("", equation.result);
      return product.Ordered(equation.result);
    }
    for (size_t i = 1; i < operands.size(); ++i) {
      const Operand& own = equation.operands[i];
      std::string kept = equation.result;
      if (i + 1 < operands.size()) {  // what the result or later operands name
        std::string wanted = equation.result;
        for (size_t later = i + 1; later < operands.size(); ++later) {
          wanted += equation.operands[later].letters;
        }
        std::string seen;
        kept = Letters(product.letters + own.letters, [&](char c) {
          const bool is_new = !Has(seen, c);
          seen += c;
          return is_new && Has(wanted, c);
        });
      }
      product = Contract(product, own, kept);
      if (product.x.empty()) return product.x;
    }
    return product.x;
  });
}

Var outer(Var a, Var b) {
  const nn::Trace::Function called("outer");
  return einsum("i,j->ij", a, b);
}

}  // namespace zg
