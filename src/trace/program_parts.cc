#include "src/trace/program_parts.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"

namespace etude {
namespace {

using PartsJson = nlohmann::ordered_json;

std::optional<uint64_t> PartId(const PartsJson& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  return json.get<uint64_t>();
}

std::optional<int64_t> PartCount(const PartsJson& json) {
  const auto number = PartId(json);
  if (!number || *number > uint64_t{INT64_MAX}) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// ["forward", 0, 2, 26, 51]: phase, step, micro-batch or null, first and last id.
std::optional<ProgramSpan> PartIn(const PartsJson& json) {
  if (!json.is_array() || json.size() != 5 || !json[0].is_string()) return std::nullopt;
  const auto phase = std::ranges::find(kAllPhases, json[0].get_ref<const std::string&>(),
                                       [](Phase one) { return Name(one); });
  const auto step = PartCount(json[1]);
  const auto micro_batch = PartCount(json[2]);
  const auto first = PartId(json[3]);
  const auto last = PartId(json[4]);
  if (phase == std::end(kAllPhases) || !step || (!micro_batch && !json[2].is_null()) || !first ||
      !last || *last < *first) {
    return std::nullopt;
  }
  return ProgramSpan{.part = {.step = *step, .phase = *phase, .micro_batch = micro_batch},
                     .first = *first,
                     .last = *last};
}

}  // namespace

void StateParts(std::span<const ProgramSpan> spans, TraceBuilder& builder) {
  ForgetParts(builder);
  if (spans.empty()) return;
  std::string text;
  for (const ProgramSpan& span : spans) {
    const ProgramPart& part = span.part;
    text += fmt::format("{}[\"{}\",{},{},{},{}]", text.empty() ? '[' : ',', Name(part.phase),
                        part.step, part.micro_batch ? std::to_string(*part.micro_batch) : "null",
                        span.first, span.last);
  }
  builder.info().extras.push_back(
      {.key = builder.Intern(kProgramPartsKey), .text = builder.Intern(text + "]")});
}

void ForgetParts(TraceBuilder& builder) {
  std::erase_if(builder.info().extras,
                [&](const Extra& extra) { return builder.text(extra.key) == kProgramPartsKey; });
}

Result<std::vector<ProgramSpan>> StatedParts(const Trace& trace) {
  std::vector<ProgramSpan> spans;
  for (const Extra& extra : trace.info().extras) {
    if (extra.form != Extra::Form::kJson || trace.text(extra.key) != kProgramPartsKey) continue;
    const auto fails = [&](size_t number, const std::string& found) {
      return BadInput(
          fmt::format("{}: found {} as part {}, expected [phase, step, micro-batch or null, first "
                      "id, last id], ascending and apart",
                      kProgramPartsKey, found, number));
    };
    const auto json = ParseBounded<PartsJson>(trace.text(extra.text));
    if (!json.is_array()) {
      return BadInput(fmt::format("{}: found no list, expected one of parts", kProgramPartsKey));
    }
    for (const PartsJson& one : json) {
      const auto span = PartIn(one);
      if (!span || (!spans.empty() && span->first <= spans.back().last)) {
        constexpr size_t kShown = 60;
        return fails(
            spans.size(),
            one.dump(-1, ' ', true, PartsJson::error_handler_t::replace).substr(0, kShown));
      }
      spans.push_back(*span);
    }
  }
  return spans;
}

std::vector<const ProgramSpan*> SpansOfNodes(const Trace& trace,
                                             std::span<const ProgramSpan> spans) {
  std::vector<const ProgramSpan*> of(trace.node_count());
  ForEachNode(trace, [&](NodeId node) {
    const uint64_t id = trace.source_id(node);
    const auto after = std::ranges::upper_bound(spans, id, {}, &ProgramSpan::first);
    if (after == spans.begin() || std::prev(after)->last < id) return;
    of[node.index()] = &*std::prev(after);
  });
  return of;
}

}  // namespace etude
