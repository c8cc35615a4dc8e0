#include "src/formats/kineto_categories.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace etude {
namespace {

// Of several categories with one kind and place the first is the default.
constexpr auto kCategories = std::to_array<KinetoCategory>({
    {"cpu_op", NodeKind::kOperator, Place::kHost},
    {"user_annotation", NodeKind::kLabel, Place::kHost},
    {"python_function", NodeKind::kLabel, Place::kHost},
    {"cpu_instant_event", NodeKind::kLabel, Place::kHost},
    {"cuda_runtime", NodeKind::kRuntime, Place::kHost},
    {"cuda_driver", NodeKind::kRuntime, Place::kHost},
    {"privateuse1_runtime", NodeKind::kRuntime, Place::kHost},
    {"privateuse1_driver", NodeKind::kRuntime, Place::kHost},
    {"xpu_runtime", NodeKind::kRuntime, Place::kHost},
    {"xpu_driver", NodeKind::kRuntime, Place::kHost},
    {"hip_runtime", NodeKind::kRuntime, Place::kHost},
    {"mtia_runtime", NodeKind::kRuntime, Place::kHost},
    {"runtime", NodeKind::kRuntime, Place::kHost},
    {"overhead", NodeKind::kLabel, Place::kHost},
    {"kernel", NodeKind::kKernel, Place::kDevice},
    {"concurrent_kernel", NodeKind::kKernel, Place::kDevice},
    {"gpu_op", NodeKind::kKernel, Place::kDevice},
    {"mtia_ccp_events", NodeKind::kKernel, Place::kDevice},
    {"gpu_memcpy", NodeKind::kMemcpy, Place::kDevice},
    {"gpu_memset", NodeKind::kMemset, Place::kDevice},
    {"cuda_sync", NodeKind::kSync, Place::kDevice},
    {"gpu_user_annotation", NodeKind::kLabel, Place::kDevice},
    {"Trace", NodeKind::kLabel, Place::kUnknown},  // the profiler's own spans
});

// Meta's accelerators have one category for all that a device does, and say by name what is no
// kernel.
constexpr std::string_view kMtiaWork = "mtia_ccp_events";
constexpr std::pair<std::string_view, NodeKind> kMtiaKinds[] = {
    {"dma_request", NodeKind::kMemcpy},
    {"event_record", NodeKind::kSync},
    {"event_wait", NodeKind::kSync},
};

}  // namespace

bool IsMemoryEvent(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kMetadata && trace.name(node) == kMemoryEvent;
}

KinetoCategory FindKinetoCategory(std::string_view name, std::string_view event) {
  const auto row = std::ranges::find(kCategories, name, &KinetoCategory::name);
  if (row == kCategories.end()) return {.name = name};
  KinetoCategory category = *row;
  if (name == kMtiaWork) {
    const auto kind =
        std::ranges::find(kMtiaKinds, event, [](const auto& one) { return one.first; });
    if (kind != std::end(kMtiaKinds)) category.kind = kind->second;
  }
  return category;
}

std::string_view DefaultKinetoCategory(NodeKind kind, Place place) {
  if (IsCommunication(kind)) {
    kind = place == Place::kDevice ? NodeKind::kKernel : NodeKind::kOperator;
  }
  for (const KinetoCategory& row : kCategories) {
    if (row.kind == kind && row.place == place) return row.name;
  }
  return {};
}

}  // namespace etude
