#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Error of incompatible settings.
struct Misfit : Error {
  Misfit(std::vector<std::string> settings, std::string text)
      : Error{ErrorCode::kBadInput, std::move(text)}, keys(std::move(settings)) {}

  // Names of the settings in files, "plan.tp"; the one most likely to be changed first.
  std::vector<std::string> keys;
};

// A Misfit converts to the error of a Status.
using Fits = tl::expected<void, Misfit>;

// Converts an error that does not concern settings: without keys.
inline Misfit AsMisfit(const Error& error) {
  Misfit misfit({}, error.message);
  misfit.code = error.code;
  return misfit;
}

inline tl::unexpected<Misfit> MakeMisfit(std::vector<std::string> keys, std::string message) {
  return tl::unexpected<Misfit>(Misfit(std::move(keys), std::move(message)));
}

// Places of a file's keys: "model.toml:3:10".
using KeyPlaces = std::map<std::string, std::string, std::less<>>;

// Prefixes the message with the place of the first key that has one, else with `otherwise`.
inline Error PlacedError(const Misfit& misfit, const KeyPlaces& places, std::string otherwise) {
  for (const std::string& key : misfit.keys) {
    const auto found = places.find(key);
    if (found == places.end()) continue;
    otherwise = found->second;
    break;
  }
  return Error{misfit.code, std::move(otherwise) + ": " + misfit.message};
}

}  // namespace etude

// Returns the misfit of `expr`, if it has one, from the enclosing function, which returns Fits.
#define ETUDE_RETURN_IF_MISFIT(expr)                                         \
  do {                                                                       \
    if (auto etude_fits = (expr); !etude_fits) {                             \
      return tl::unexpected<::etude::Misfit>(std::move(etude_fits).error()); \
    }                                                                        \
  } while (false)
