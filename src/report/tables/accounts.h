#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/transform/edit/slice.h"
#include "src/transform/link/link.h"
#include "src/transform/write_trace.h"

namespace etude {

// Returns part / whole; 1 if there is nothing to link.
double LinkedShare(uint64_t part, uint64_t whole);

// Returns the outcome of linking: `host_nodes` and `events` by outcome, `coverage`, and the result.
nlohmann::ordered_json LinkAccount(const LinkResult& result);
// Returns the numbers of nodes and references that a slice kept and cut.
nlohmann::ordered_json SliceAccount(const SliceResult& slice);

// Returns the size of the file written to `path`: "3.20 MiB", with "before compression" appended
// for names of compressed files.
std::string WrittenSize(std::string_view path, uint64_t bytes);

nlohmann::ordered_json ToJson(const WrittenTrace& written);
// Returns a readable summary.
std::string ToText(const WrittenTrace& written);

}  // namespace etude
