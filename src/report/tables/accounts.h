#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/transform/edit/slice.h"
#include "src/transform/link/link.h"
#include "src/transform/write_trace.h"

namespace etude {

// 1 where there is nothing to link.
double LinkedShare(uint64_t part, uint64_t whole);

// What linking did with every node of both traces: `host_nodes` and `events` by outcome,
// `coverage`, and what came of it.
nlohmann::ordered_json LinkAccount(const LinkResult& result);
// How many nodes and references a slice kept and cut.
nlohmann::ordered_json SliceAccount(const SliceResult& slice);

// The size of what was written to `path`: "3.20 MiB", with "before compression" behind it if its
// name has it compressed.
std::string WrittenSize(std::string_view path, uint64_t bytes);

nlohmann::ordered_json ToJson(const WrittenTrace& written);
// Lines that say it to people.
std::string ToText(const WrittenTrace& written);

}  // namespace etude
