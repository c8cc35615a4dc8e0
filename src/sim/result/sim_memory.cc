#include "src/sim/result/sim_memory.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "src/base/text/quantity.h"
#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/chakra/chakra_notes.h"

namespace etude {
namespace {

std::optional<int64_t> SizeOf(std::string_view text) {
  constexpr double kMost = 1e15;
  const auto size = ParseDecimal(text);
  if (!size || *size < 0 || *size > kMost) return std::nullopt;
  return static_cast<int64_t>(*size);
}

struct TensorLife {
  std::optional<int64_t> size;
  int64_t from = INT64_MAX;  // ns; INT64_MAX: never written
  int64_t until = -1;        // -1: never read
  NodeId writer;
};

struct Change {
  int64_t time = 0;
  int64_t size = 0;  // negative sizes (frees) sort before positive ones
  NodeId node;
};

std::optional<SimMemory> OfTensors(const Trace& trace, const SimProgram& program,
                                   const SimRankResult& result) {
  std::unordered_map<std::string_view, size_t> numbers;
  std::vector<TensorLife> lives;
  const auto life_of = [&](std::string_view name, std::string_view size) -> TensorLife& {
    const auto [at, is_new] = numbers.emplace(name, lives.size());
    if (is_new) lives.push_back({.size = SizeOf(size)});
    return lives[at->second];
  };
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const NodeId node = program.origin[i];
    const auto inputs = chakra::NamedTensors(trace, node, chakra::TensorList::kInputs);
    const auto outputs = chakra::NamedTensors(trace, node, chakra::TensorList::kOutputs);
    if (result.ends[i] < 0) continue;
    for (const chakra::NamedTensor& tensor : inputs) {
      TensorLife& life = life_of(tensor.name, tensor.size);
      life.until = std::max(life.until, result.ends[i]);
    }
    for (const chakra::NamedTensor& tensor : outputs) {
      TensorLife& life = life_of(tensor.name, tensor.size);
      if (result.begins[i] >= life.from) continue;
      life.from = result.begins[i];
      life.writer = node;
    }
  }
  if (lives.empty()) return std::nullopt;
  SimMemory memory{.in_bytes = false};
  std::vector<Change> changes;
  for (const TensorLife& life : lives) {
    if (!life.size) {
      ++memory.unknown;
      continue;
    }
    if (life.from == INT64_MAX) {
      memory.before += *life.size;
    } else {
      changes.push_back({.time = life.from, .size = *life.size, .node = life.writer});
    }
    if (life.until >= 0) {
      // Data read only before they are written are another value, which ends with the later of
      // both.
      const bool is_read = life.from == INT64_MAX || life.until > life.from;
      if (is_read) changes.push_back({.time = life.until, .size = -*life.size, .node = {}});
    }
  }
  std::ranges::sort(changes, {}, [](const Change& change) {
    return std::tuple(change.time, change.size > 0, change.node);
  });
  memory.peak = memory.before;
  int64_t live = memory.before;
  NodeId first;  // first of the nodes that begin at one time
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (i == 0 || changes[i - 1].time != change.time || changes[i - 1].size < 0)
      first = change.node;
    live += change.size;
    if (live <= memory.peak) continue;
    memory.peak = live;
    memory.at = change.time;
    memory.node = first;
  }
  memory.after = live;
  return memory;
}

std::optional<SimMemory> OfFormula(const Trace& trace, const SimProgram& program,
                                   const SimRankResult& result) {
  struct Use {
    int64_t begin = 0;
    uint64_t bytes = 0;
    NodeId node;
  };
  std::vector<Use> uses;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const NodeId node = program.origin[i];
    const auto stated = chakra::StatedUnsigned(trace, node, chakra::kMemoryInUse);
    // A receive may be posted long before the stated use.
    if (program.nodes[i].kind == NodeKind::kRecv) continue;
    if (!stated || *stated > INT64_MAX || result.ends[i] < 0) continue;
    uses.push_back({.begin = result.begins[i], .bytes = *stated, .node = node});
  }
  if (uses.empty()) return std::nullopt;
  std::ranges::stable_sort(uses, {}, &Use::begin);
  SimMemory memory;
  memory.before = static_cast<int64_t>(uses.front().bytes);
  memory.after = static_cast<int64_t>(uses.back().bytes);
  const auto most = std::ranges::max_element(uses, {}, &Use::bytes);  // the first maximum
  memory.peak = static_cast<int64_t>(most->bytes);
  memory.at = most->begin;
  memory.node = most->node;
  return memory;
}

}  // namespace

std::optional<SimMemory> FindSimMemory(const Trace& trace, const SimProgram& program,
                                       const SimRankResult& result) {
  if (auto stated = OfFormula(trace, program, result)) return stated;
  return OfTensors(trace, program, result);
}

}  // namespace etude
