#include "src/jobs/edits/applied_edit.h"

#include <fmt/format.h>

#include "src/base/text/format_count.h"

namespace etude {

std::string_view Name(Certainty certainty) {
  switch (certainty) {
    case Certainty::kExact: return "structure exact";
    case Certainty::kInterpolated: return "interpolated";
    case Certainty::kMeasured: return "measured";
    case Certainty::kModelled: break;
  }
  return "modelled";
}

Status CheckNumber(std::string_view option, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return {};
  return MakeError(ErrorCode::kUsage, fmt::format("{}: found {}, expected 1 to {}", option, value,
                                                  FormatCount(static_cast<uint64_t>(most))));
}

tl::unexpected<Error> RefusedEdit(std::string_view option, const Error& error) {
  return MakeError(error.code, fmt::format("{}: {}", option, error.message));
}

}  // namespace etude
