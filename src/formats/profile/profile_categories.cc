#include "src/formats/profile/profile_categories.h"

#include <algorithm>
#include <array>
#include <optional>

#include "src/formats/profile/comm_facts.h"
#include "src/formats/profile/comm_kernels.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

// If several categories have the same kind and place, the first is the default.
constexpr auto kCategories = std::to_array<ProfileCategory>({
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
    {"glow_runtime", NodeKind::kRuntime, Place::kHost},
    {"mlu_runtime", NodeKind::kRuntime, Place::kHost},
    {"hpu_op", NodeKind::kRuntime, Place::kHost},
    {"xpu_sync", NodeKind::kRuntime, Place::kHost},
    {"runtime", NodeKind::kRuntime, Place::kHost},
    {"overhead", NodeKind::kLabel, Place::kHost},
    {"collective_comm", NodeKind::kLabel, Place::kHost},  // calls of Intel's oneCCL
    {"kernel", NodeKind::kKernel, Place::kDevice},
    {"concurrent_kernel", NodeKind::kKernel, Place::kDevice},
    {"gpu_op", NodeKind::kKernel, Place::kDevice},
    {"mtia_ccp_events", NodeKind::kKernel, Place::kDevice},
    {"gpu_memcpy", NodeKind::kMemcpy, Place::kDevice},
    {"mlu_memcpy", NodeKind::kMemcpy, Place::kDevice},
    {"gpu_memset", NodeKind::kMemset, Place::kDevice},
    {"mlu_memset", NodeKind::kMemset, Place::kDevice},
    {"cuda_sync", NodeKind::kSync, Place::kDevice},
    {"cuda_event", NodeKind::kSync, Place::kDevice},
    {"gpu_user_annotation", NodeKind::kLabel, Place::kDevice},
    {"mlu_user_annotation", NodeKind::kLabel, Place::kDevice},
    {"Trace", NodeKind::kLabel, Place::kUnknown},  // the profiler's own spans
    // Etude's timelines
    {"compute", NodeKind::kCompute, Place::kDevice},
    {"sync", NodeKind::kSync, Place::kHost},
    // torch_npu, in addition to those above
    {"enqueue", NodeKind::kRuntime, Place::kHost},
    {"dequeue", NodeKind::kRuntime, Place::kHost},
    // rocprofv3
    {"kernel_dispatch", NodeKind::kKernel, Place::kDevice},
    {"memory_copy", NodeKind::kMemcpy, Place::kDevice},
    {"hip_api", NodeKind::kRuntime, Place::kHost},
    {"hip_runtime_api", NodeKind::kRuntime, Place::kHost},
    {"hip_compiler_api", NodeKind::kRuntime, Place::kHost},
    {"hsa_api", NodeKind::kRuntime, Place::kHost},
    {"memory_allocation", NodeKind::kRuntime, Place::kHost},
    {"rocdecode_api", NodeKind::kRuntime, Place::kHost},
    {"rocjpeg_api", NodeKind::kRuntime, Place::kHost},
    {"rccl_api", NodeKind::kLabel, Place::kHost},
    {"marker_api", NodeKind::kLabel, Place::kHost},
    {"scratch_memory", NodeKind::kLabel, Place::kDevice},
    // ONNX Runtime, whose device kernels are "Kernel"
    {"Session", NodeKind::kLabel, Place::kHost},
    {"Node", NodeKind::kOperator, Place::kHost},
    {"Api", NodeKind::kRuntime, Place::kHost},
    // Names in PyTorch 1.8 and 1.9
    {"Operator", NodeKind::kOperator, Place::kHost},
    {"Runtime", NodeKind::kRuntime, Place::kHost},
    {"Kernel", NodeKind::kKernel, Place::kDevice},
    {"Memcpy", NodeKind::kMemcpy, Place::kDevice},
    {"Memset", NodeKind::kMemset, Place::kDevice},
});

// Events whose name gives them another kind than most events of their category.
struct NamedEvent {
  std::string_view category;
  std::string_view name;
  NodeKind kind;
  bool is_beginning = false;  // whether it is a prefix of the name
  std::optional<uint8_t> scope = std::nullopt;
};
constexpr NamedEvent kNamedEvents[] = {
    {"mtia_ccp_events", "dma_request", NodeKind::kMemcpy},
    {"mtia_ccp_events", "event_record", NodeKind::kSync},
    {"mtia_ccp_events", "event_wait", NodeKind::kSync},
    {"Operator", kStepMark, NodeKind::kLabel, true},
    {"cpu_op", kStepMark, NodeKind::kLabel, true},  // of torch_npu
    {"cpu_op", kAutogradCall, NodeKind::kLabel, true, kFunctionScope},
};

bool IsNamed(const NamedEvent& known, std::string_view event) {
  return known.is_beginning ? event.starts_with(known.name) : event == known.name;
}

}  // namespace

ProfileCategory FindProfileCategory(std::string_view name, std::string_view event) {
  const auto row = std::ranges::find(kCategories, name, &ProfileCategory::name);
  if (row == kCategories.end()) return {.name = name};
  ProfileCategory category = *row;
  for (const NamedEvent& known : kNamedEvents) {
    if (known.category != name || !IsNamed(known, event)) continue;
    category.kind = known.kind;
    category.scope = known.scope;
  }
  return category;
}

NodeKind KindOfEvent(const ProfileCategory& category, std::string_view event,
                     std::string_view collective) {
  if (category.kind == NodeKind::kKernel && (IsCommKernel(event) || !collective.empty())) {
    return PointToPointFromName(collective).value_or(NodeKind::kCollective);
  }
  // Old files do not name the communication, but a nested label of a backend may.
  const bool is_recorded = category.place == Place::kHost && event == kRecordParamComms;
  return is_recorded && !collective.empty() ? KindOfCommunication(collective) : category.kind;
}

std::string_view DefaultProfileCategory(NodeKind kind, Place place) {
  if (IsCommunication(kind)) {
    kind = place == Place::kDevice ? NodeKind::kKernel : NodeKind::kOperator;
  }
  for (const ProfileCategory& row : kCategories) {
    if (row.kind == kind && row.place == place) return row.name;
  }
  return {};
}

}  // namespace etude
