#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/result.h"

namespace etude {

// How sure the result of an edit is.
enum class Certainty : uint8_t {
  kExact,         // structure exact: the nodes are those of the edited program
  kInterpolated,  // times between those of two recordings
  kModelled,      // times by the user's factor, or beyond those of two recordings
  kMeasured,      // times of the operators on a machine, measured or from a table
};
// Returns "structure exact", "interpolated", "modelled" or "measured": stable, appears in files.
std::string_view Name(Certainty certainty);

// One edit that was made.
struct AppliedEdit {
  std::string edit;  // as given: "--dp 8"
  Certainty certainty = Certainty::kModelled;
  uint64_t nodes = 0;                // added or changed, over all recorded ranks
  std::string text;                  // what changed, and what did not
  nlohmann::ordered_json details{};  // null without
};

// Returns kUsage unless the value of an option is from 1 to `most`.
Status CheckNumber(std::string_view option, int64_t value, int64_t most);

// Returns the reason why a job does not support an edit, with the option in front.
tl::unexpected<Error> RefusedEdit(std::string_view option, const Error& error);

}  // namespace etude
