#include "src/report/tables/operator_share.h"

#include <fmt/format.h>

#include "src/report/text/format.h"

namespace etude {

std::string OperatorShareText(double share) {
  // Below this share a replay's error is mostly due to what it omits.
  constexpr double kMostly = 0.75;
  return fmt::format(
      "operators cover {} of the recorded step; a replay lacks the rest (Python, autograd engine, "
      "waits){}\n",
      FormatShare(share), share < kMostly ? ": expect it to be shorter" : "");
}

}  // namespace etude
