#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Settings that do not go together.
struct Misfit : Error {
  Misfit(std::vector<std::string> settings, std::string text)
      : Error{ErrorCode::kBadInput, std::move(text)}, keys(std::move(settings)) {}

  // By their names in files, "plan.tp"; the one that is likeliest to be changed first.
  std::vector<std::string> keys;
};

// Who reads one as a Status has its error.
using Fits = tl::expected<void, Misfit>;

// An error that is not of settings: without keys.
inline Misfit AsMisfit(const Error& error) {
  Misfit misfit({}, error.message);
  misfit.code = error.code;
  return misfit;
}

inline tl::unexpected<Misfit> MakeMisfit(std::vector<std::string> keys, std::string message) {
  return tl::unexpected<Misfit>(Misfit(std::move(keys), std::move(message)));
}

// Where the keys of a file stand: "model.toml:3:10".
using KeyPlaces = std::map<std::string, std::string, std::less<>>;

// The place of the first key that has one, else `otherwise`, before the message.
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

// Leaves the enclosing function, which returns Fits, with the misfit of `expr` if it has one.
#define ETUDE_RETURN_IF_MISFIT(expr)                                         \
  do {                                                                       \
    if (auto etude_fits = (expr); !etude_fits) {                             \
      return tl::unexpected<::etude::Misfit>(std::move(etude_fits).error()); \
    }                                                                        \
  } while (false)
