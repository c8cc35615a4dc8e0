#include "src/jobs/edits/applied_edit.h"

#include <fmt/format.h>

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

tl::unexpected<Error> RefusedEdit(std::string_view option, const Error& error) {
  return MakeError(error.code, fmt::format("{}: {}", option, error.message));
}

}  // namespace etude
