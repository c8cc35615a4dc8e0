#include "src/compose/composition.h"

#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kCompositionKey = "etude_composition";
constexpr int64_t kCompositionVersion = 1;

std::optional<int64_t> CountOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  const auto count = found->get<int64_t>();
  return count < 0 ? std::nullopt : std::optional(count);
}

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<ComposedPart> ReadPart(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  ComposedPart part{.name = TextOf(json, "name"),
                    .trace = TextOf(json, "trace"),
                    .step = TextOf(json, "step"),
                    .changes = TextOf(json, "changes")};
  for (const auto& [key, count] :
       {std::pair("repetitions", &part.repetitions), std::pair("operators", &part.operators),
        std::pair("untimed", &part.untimed), std::pair("dropped", &part.dropped),
        std::pair("taken_apart", &part.taken_apart), std::pair("replaced", &part.replaced),
        std::pair("scaled", &part.scaled)}) {
    const auto found = CountOf(json, key);
    if (!found) return std::nullopt;
    *count = *found;
  }
  if (const auto expected = CountOf(json, "expected_ns")) part.expected = Nanos{*expected};
  return part;
}

int64_t Sum(const std::vector<ComposedPart>& parts, int64_t ComposedPart::*count) {
  int64_t sum = 0;
  for (const ComposedPart& part : parts) {
    int64_t all = 0;
    if (__builtin_mul_overflow(part.repetitions, part.*count, &all) ||
        __builtin_add_overflow(sum, all, &sum)) {
      return INT64_MAX;  // of a damaged file
    }
  }
  return sum;
}

Json OrNull(std::optional<Nanos> time) { return time ? Json(time->count) : Json(nullptr); }

}  // namespace

std::optional<Nanos> Composition::expected() const {
  Nanos sum;
  for (const ComposedPart& part : parts) {
    if (!part.expected) return std::nullopt;
    Nanos all;
    if (__builtin_mul_overflow(part.expected->count, part.repetitions, &all.count)) {
      return std::nullopt;
    }
    sum = sum + all;
  }
  return sum;
}
int64_t Composition::operators() const { return Sum(parts, &ComposedPart::operators); }
int64_t Composition::untimed() const { return Sum(parts, &ComposedPart::untimed); }

std::string CompositionJson(const Composition& composition) {
  Json json = {{"format", "etude-composition"},
               {"version", kCompositionVersion},
               {"expected_ns", OrNull(composition.expected())},
               {"operators", composition.operators()},
               {"operators_without_time", composition.untimed()},
               {"threads", composition.threads ? Json(*composition.threads) : Json(nullptr)},
               {"parts", Json::array()}};
  for (const ComposedPart& part : composition.parts) {
    json["parts"].push_back({{"name", part.name},
                             {"trace", part.trace},
                             {"step", part.step},
                             {"changes", part.changes},
                             {"repetitions", part.repetitions},
                             {"operators", part.operators},
                             {"untimed", part.untimed},
                             {"dropped", part.dropped},
                             {"taken_apart", part.taken_apart},
                             {"replaced", part.replaced},
                             {"scaled", part.scaled},
                             {"expected_ns", OrNull(part.expected)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void KeepComposition(const Composition& composition, TraceBuilder& builder) {
  builder.info().extras.push_back({.key = builder.Intern(kCompositionKey),
                                   .text = builder.Intern(CompositionJson(composition))});
}

std::optional<Composition> CompositionOf(const Trace& trace) {
  for (const Extra& extra : trace.info().extras) {
    if (extra.form != Extra::Form::kJson || trace.text(extra.key) != kCompositionKey) continue;
    const Json json = ParseBounded<Json>(trace.text(extra.text));
    if (!json.is_object() || CountOf(json, "version") != kCompositionVersion) return std::nullopt;
    const auto parts = json.find("parts");
    if (parts == json.end() || !parts->is_array()) return std::nullopt;
    Composition composition{.threads = CountOf(json, "threads")};
    for (const Json& row : *parts) {
      std::optional<ComposedPart> part = ReadPart(row);
      if (!part) return std::nullopt;
      composition.parts.push_back(std::move(*part));
    }
    return composition;
  }
  return std::nullopt;
}

}  // namespace etude
