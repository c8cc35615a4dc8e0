#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etude {

// Returns the candidate that `word` was most likely meant to be, or "" if none is near. Up to a
// third of its letters may be missing, extra, wrong or swapped with the next one; case is ignored.
// For qualified names ("aten::mm") the part before the last "::" is compared only if `word` has
// one.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns "; did you mean 'x'?" for the name nearest to `word`; "" if none is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);
// Returns the text of DidYouMean, or ", expected one of a, b" if no name is near.
std::string MeantOrAll(std::string_view word, const std::vector<std::string>& names);

}  // namespace etude
