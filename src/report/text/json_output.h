#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/units.h"

namespace etude {

template <typename T>
nlohmann::ordered_json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
// Returns nanoseconds.
inline nlohmann::ordered_json OrNull(std::optional<Nanos> time) {
  return time ? nlohmann::ordered_json(time->count) : nlohmann::ordered_json(nullptr);
}

// Serializes a document. Invalid UTF-8 becomes U+FFFD.
inline std::string JsonText(const nlohmann::ordered_json& json, int indent = 2) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace etude
