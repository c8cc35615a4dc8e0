#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstring>
#include <string_view>

// Iteration over values parsed by simdjson; the first error ends it and is returned. Values are not
// copied: copying a value that was just written in parts is slow.
namespace etude {

// Returns true if `text` is `word`, in a few instructions: == of string_view calls two functions.
template <size_t N>
bool Is(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && std::memcmp(text.data(), word, N - 1) == 0;
}

// Returns a token without trailing blanks.
inline std::string_view TrimmedToken(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}
// Returns the token of a scalar, without trailing blanks.
inline std::string_view ScalarToken(simdjson::ondemand::value& value) {
  return TrimmedToken(value.raw_json_token());
}

// Calls `fn(key, value)`, which returns an error code, for each member.
template <typename Fn>
simdjson::error_code ForEachMember(simdjson::ondemand::object object, Fn fn) {
  for (auto result : object) {
    if (result.error()) return result.error();
    simdjson::ondemand::field& field = result.value_unsafe();
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    if (const auto error = fn(key, field.value())) return error;
  }
  return simdjson::SUCCESS;
}
// Calls `fn` for each member of a value that must be an object.
template <typename Fn>
simdjson::error_code ForEachMember(simdjson::ondemand::value& value, Fn fn) {
  simdjson::ondemand::object object;
  if (const auto error = value.get_object().get(object)) return error;
  return ForEachMember(object, fn);
}

// Calls `fn(element)` for each element of a value that must be an array.
template <typename Fn>
simdjson::error_code ForEachElement(simdjson::ondemand::value& value, Fn fn) {
  simdjson::ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  for (auto result : array) {
    if (result.error()) return result.error();
    if (const auto error = fn(result.value_unsafe())) return error;
  }
  return simdjson::SUCCESS;
}

}  // namespace etude
