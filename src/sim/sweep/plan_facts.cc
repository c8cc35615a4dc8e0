#include "src/sim/sweep/plan_facts.h"

#include <cmath>

namespace etude {
namespace {

using PlanJson = nlohmann::ordered_json;

struct MemoryMember {
  const char* key;
  Bytes PlanMemory::*bytes;
};
constexpr MemoryMember kMemoryMembers[] = {
    {"peak_bytes", &PlanMemory::peak},           {"weights_bytes", &PlanMemory::weights},
    {"gradients_bytes", &PlanMemory::gradients}, {"optimizer_bytes", &PlanMemory::optimizer},
    {"cache_bytes", &PlanMemory::cache},
};

std::optional<int64_t> WholeMember(const PlanJson& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX) return std::nullopt;
  const auto value = found->get<int64_t>();
  return value < 0 ? std::nullopt : std::optional(value);
}

std::optional<double> NumberMember(const PlanJson& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::string> TextMember(const PlanJson& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

template <typename T>
PlanJson NullIfUnknown(const std::optional<T>& value) {
  return value ? PlanJson(*value) : PlanJson(nullptr);
}

}  // namespace

std::optional<PlanRates> RatesOf(const PlanFacts& facts, Nanos step) {
  if (step.count <= 0 || facts.ranks < 1) return std::nullopt;
  const double seconds = static_cast<double>(step.count) / 1e9;
  const auto ranks = static_cast<double>(facts.ranks);
  PlanRates rates;
  rates.items_per_second = static_cast<double>(facts.items) / seconds;
  rates.items_per_second_per_device = rates.items_per_second / ranks;
  if (facts.peak && *facts.peak > 0) rates.mfu = facts.flops / (seconds * ranks * *facts.peak);
  return rates;
}

PlanJson ToJson(const PlanFacts& facts) {
  PlanJson memory = PlanJson::object();
  for (const MemoryMember& member : kMemoryMembers) {
    memory[member.key] = (facts.memory.*member.bytes).count;
  }
  PlanJson json = {{"ranks", facts.ranks},
                   {"item", facts.item},
                   {"items", facts.items},
                   {"model_flops", facts.flops},
                   {"bubble", NullIfUnknown(facts.bubble)},
                   {"memory", std::move(memory)}};
  json["device"] = facts.device.empty() ? PlanJson(nullptr) : PlanJson(facts.device);
  json["peak_flops_per_s"] = NullIfUnknown(facts.peak);
  json["capacity_bytes"] = facts.capacity ? PlanJson(facts.capacity->count) : PlanJson(nullptr);
  return json;
}

std::optional<PlanFacts> ReadPlanFacts(const PlanJson& json) {
  if (!json.is_object()) return std::nullopt;
  const auto ranks = WholeMember(json, "ranks");
  const auto item = TextMember(json, "item");
  const auto items = WholeMember(json, "items");
  const auto flops = NumberMember(json, "model_flops");
  const auto memory = json.find("memory");
  if (!ranks || *ranks < 1 || !item || item->empty() || !items || !flops) return std::nullopt;
  if (memory == json.end() || !memory->is_object()) return std::nullopt;
  PlanFacts facts{.ranks = *ranks,
                  .item = *item,
                  .items = *items,
                  .flops = *flops,
                  .bubble = NumberMember(json, "bubble"),
                  .memory = {},
                  .device = TextMember(json, "device").value_or(""),
                  .peak = NumberMember(json, "peak_flops_per_s"),
                  .capacity = std::nullopt};
  for (const MemoryMember& member : kMemoryMembers) {
    const auto bytes = WholeMember(*memory, member.key);
    if (!bytes) return std::nullopt;
    facts.memory.*member.bytes = Bytes{*bytes};
  }
  if (const auto capacity = WholeMember(json, "capacity_bytes")) facts.capacity = Bytes{*capacity};
  return facts;
}

}  // namespace etude
