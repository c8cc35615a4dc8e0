#pragma once

#include <simdjson.h>

#include <string_view>

// How readers go through what simdjson has parsed: the first error ends it and is returned.
namespace etude {

// The token of a scalar without blanks behind it.
inline std::string_view ScalarToken(simdjson::ondemand::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

// Calls `fn(key, value)`, which returns an error code, for each member.
template <typename Fn>
simdjson::error_code ForEachMember(simdjson::ondemand::object object, Fn fn) {
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    simdjson::ondemand::value value;
    if (const auto error = field.value().get(value)) return error;
    if (const auto error = fn(key, value)) return error;
  }
  return simdjson::SUCCESS;
}
// The same for a value that must be an object.
template <typename Fn>
simdjson::error_code ForEachMember(simdjson::ondemand::value value, Fn fn) {
  simdjson::ondemand::object object;
  if (const auto error = value.get_object().get(object)) return error;
  return ForEachMember(object, fn);
}

// Calls `fn(element)` likewise for a value that must be an array.
template <typename Fn>
simdjson::error_code ForEachElement(simdjson::ondemand::value value, Fn fn) {
  simdjson::ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  for (auto element : array) {
    simdjson::ondemand::value item;
    if (const auto error = element.get(item)) return error;
    if (const auto error = fn(item)) return error;
  }
  return simdjson::SUCCESS;
}

}  // namespace etude
