#include "src/jobs/applied_edit.h"

namespace etude {

std::string_view Name(Certainty certainty) {
  switch (certainty) {
    case Certainty::kExact: return "structure exact";
    case Certainty::kInterpolated: return "interpolated";
    case Certainty::kModelled: break;
  }
  return "modelled";
}

}  // namespace etude
