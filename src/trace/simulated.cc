#include "src/trace/simulated.h"

#include <algorithm>
#include <string_view>

namespace etude {
namespace {

constexpr std::string_view kSimulatedKey = "etude_simulated";
constexpr std::string_view kHostComputesKey = "etude_host_computes";

template <typename TraceOrBuilder>
bool States(TraceOrBuilder& trace, const TraceInfo& info, std::string_view key) {
  return std::ranges::any_of(info.extras, [&](const Extra& extra) {
    return extra.form == Extra::Form::kJson && trace.text(extra.key) == key &&
           trace.text(extra.text) == "true";
  });
}

void State(TraceBuilder& builder, std::string_view key) {
  auto& extras = builder.info().extras;
  std::erase_if(extras, [&](const Extra& extra) { return builder.text(extra.key) == key; });
  extras.push_back({.key = builder.Intern(key), .text = builder.Intern("true")});
}

}  // namespace

void StateSimulated(TraceBuilder& builder) { State(builder, kSimulatedKey); }
bool IsSimulated(const Trace& trace) { return States(trace, trace.info(), kSimulatedKey); }

void StateHostComputes(TraceBuilder& builder) { State(builder, kHostComputesKey); }
bool HostComputes(const Trace& trace) { return States(trace, trace.info(), kHostComputesKey); }
bool HostComputes(TraceBuilder& builder) {
  return States(builder, builder.info(), kHostComputesKey);
}

}  // namespace etude
