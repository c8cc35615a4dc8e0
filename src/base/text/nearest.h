#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etude {

// The candidate that `word` was most likely meant to be, or "" if none is near: a third of its
// letters may be missing, in excess, others or swapped with the next one; case does not count. Of
// qualified names ("aten::mm") the part before the last "::" is compared only if `word` has one.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" of what is nearest to a mistyped `word`; "" if nothing is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);
// The same, or ", expected one of a, b" where none is near.
std::string MeantOrAll(std::string_view word, const std::vector<std::string>& names);

}  // namespace etude
