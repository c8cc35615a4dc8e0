#pragma once

#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/limits.h"

namespace etude {

// Counts how deeply JSON is nested while it is parsed: parsing does not recurse, but what is done
// with the value then does (copying, comparing, writing), and a deep one would end the program.
class JsonDepth {
 public:
  using Event = nlohmann::json::parse_event_t;

  explicit JsonDepth(size_t most) : most_(most) {}

  // To be called for each event of the parser; what it returns is the callback's.
  bool See(Event event) {
    if (event == Event::object_start || event == Event::array_start) {
      too_deep_ = too_deep_ || ++depth_ > most_;
    } else if (event == Event::object_end || event == Event::array_end) {
      --depth_;
    }
    return !too_deep_;
  }
  bool too_deep() const { return too_deep_; }

 private:
  size_t most_;
  size_t depth_ = 0;
  bool too_deep_ = false;
};

// A value from outside, of a text or a stream; a discarded one if that is no JSON or nested more
// deeply than `depth`.
template <typename Json, typename Input>
Json ParseBounded(Input&& input, size_t depth = Limits{}.depth) {
  JsonDepth watch(depth);
  const auto see = [&](int, JsonDepth::Event event, const Json&) { return watch.See(event); };
  Json json = Json::parse(std::forward<Input>(input), see, /*allow_exceptions=*/false);
  return watch.too_deep() ? Json(Json::value_t::discarded) : json;
}

}  // namespace etude
