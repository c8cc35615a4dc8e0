#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "src/transform/link.h"
#include "src/transform/slice.h"
#include "src/transform/write_trace.h"

namespace etude {

// 1 where there is nothing to link.
double LinkedShare(uint64_t part, uint64_t whole);

// What linking did with every node of both traces: `host_nodes` and `events` by outcome,
// `coverage`, and what came of it.
nlohmann::ordered_json LinkAccount(const LinkResult& result);
// How many nodes and references a slice kept and cut.
nlohmann::ordered_json SliceAccount(const SliceResult& slice);

nlohmann::ordered_json ToJson(const WrittenTrace& written);
// Lines that say it to people.
std::string ToText(const WrittenTrace& written);

}  // namespace etude
