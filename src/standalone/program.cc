#include "src/standalone/program.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

namespace etude {
namespace {

enum class SlotUse : uint8_t { kReads, kFills, kEmpties };

// Calls `fn(int32_t&, SlotUse)` for each slot of a call, in the order in which the step meets them.
template <typename Call, typename Fn>
void ForEachSlot(Call& call, Fn fn) {
  for (auto& slot : call.clear) fn(slot, SlotUse::kEmpties);
  for (auto& view : call.views) {
    fn(view.base, SlotUse::kReads);
    fn(view.slot, SlotUse::kFills);
  }
  for (auto& slot : call.inputs) fn(slot, SlotUse::kReads);
  for (auto& slot : call.results) fn(slot, SlotUse::kFills);
  for (auto& copy : call.content) {
    fn(copy.to, SlotUse::kReads);
    fn(copy.from, SlotUse::kReads);
  }
  for (auto& slot : call.released) fn(slot, SlotUse::kEmpties);
}

// What the rounds of a loop must have in common: all but the numbers of slots and forms.
using Signature = std::tuple<int32_t, std::vector<size_t>, std::vector<bool>>;

Signature SignatureOf(const ProgramCall& call) {
  std::vector<bool> there;
  for (const int32_t slot : call.inputs) there.push_back(slot != kNoSlot);
  for (const int32_t slot : call.results) there.push_back(slot != kNoSlot);
  for (const int32_t form : call.fits) there.push_back(form >= 0);
  there.push_back(call.work != kNoWork);
  there.push_back(call.finishes);
  return {call.op,
          {call.awaited.size(), call.clear.size(), call.views.size(), call.inputs.size(),
           call.results.size(), call.fits.size(), call.content.size(), call.released.size()},
          std::move(there)};
}

struct Repetition {
  size_t begin = 0;
  size_t period = 0;
  size_t repeats = 0;

  // Lines that a loop leaves out, less the line of the loop itself.
  size_t saved() const { return repeats < 2 ? 0 : (repeats - 1) * period - 1; }
};

constexpr size_t kLongestPeriod = 4096;

Repetition BestRepetition(std::span<const int32_t> kinds) {
  Repetition best;
  const size_t longest = std::min(kLongestPeriod, kinds.size() / 2);
  for (size_t period = 1; period <= longest; ++period) {
    size_t same = 0;
    for (size_t i = 0; i + period <= kinds.size(); ++i) {
      if (i + period < kinds.size() && kinds[i] == kinds[i + period]) {
        ++same;
        continue;
      }
      const Repetition found{.begin = i - same, .period = period, .repeats = same / period + 1};
      if (found.repeats > 1 && found.saved() > best.saved()) best = found;
      same = 0;
    }
  }
  return best;
}

void AppendBlocks(std::span<const int32_t> kinds, size_t first, std::vector<ProgramBlock>& blocks) {
  const Repetition best = BestRepetition(kinds);
  if (best.saved() == 0) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      blocks.push_back({.first = static_cast<uint32_t>(first + i)});
    }
    return;
  }
  AppendBlocks(kinds.first(best.begin), first, blocks);
  ProgramBlock loop{.first = static_cast<uint32_t>(first + best.begin),
                    .period = static_cast<uint32_t>(best.period),
                    .repeats = static_cast<uint32_t>(best.repeats)};
  AppendBlocks(kinds.subspan(best.begin, best.period), first + best.begin, loop.body);
  blocks.push_back(std::move(loop));
  const size_t end = best.begin + best.period * best.repeats;
  AppendBlocks(kinds.subspan(end), first + end, blocks);
}

// Numbers of one value become one slot: where PyTorch puts them in memory, one or many, differs
// between ranks.
void UniteNumbers(Program& program) {
  std::vector<bool> is_kept(static_cast<size_t>(program.slots), true);  // is only read
  for (ProgramCall& call : program.calls) {
    ForEachSlot(call, [&](int32_t slot, SlotUse use) {
      if (slot != kNoSlot && use != SlotUse::kReads) is_kept[static_cast<size_t>(slot)] = false;
    });
  }
  for (const int32_t slot : program.released_at_end) is_kept[static_cast<size_t>(slot)] = false;
  std::map<std::tuple<ProgramValue::Kind, int64_t, uint64_t>, int32_t> slots;
  std::map<int32_t, int32_t> same;
  for (const ProgramNumber& one : program.numbers) {
    if (!is_kept[static_cast<size_t>(one.slot)]) continue;
    const auto [known, is_new] = slots.emplace(
        std::tuple(one.value.kind, one.value.integer, std::bit_cast<uint64_t>(one.value.real)),
        one.slot);
    if (!is_new) same[one.slot] = known->second;
  }
  if (same.empty()) return;
  std::erase_if(program.numbers, [&](const ProgramNumber& one) { return same.contains(one.slot); });
  for (ProgramCall& call : program.calls) {
    ForEachSlot(call, [&](int32_t& slot, SlotUse) {
      const auto other = same.find(slot);
      if (other != same.end()) slot = other->second;
    });
  }
}

}  // namespace

void RenumberSlots(Program& program) {
  UniteNumbers(program);
  struct Numbers {
    int32_t last = kNoSlot;
    bool is_carried = false;  // from before the step: it has one number, which ties the steps
    bool is_emptied = false;  // what fills it next has another number, if it is not carried
  };
  std::vector<Numbers> known(static_cast<size_t>(program.slots));
  int32_t next = 0;
  const auto number = [&](int32_t& slot, SlotUse use) {
    if (slot == kNoSlot) return;
    Numbers& one = known[static_cast<size_t>(slot)];
    const bool is_first = one.last == kNoSlot;
    if (is_first) one.is_carried = use != SlotUse::kFills;
    if (is_first || (one.is_emptied && !one.is_carried && use == SlotUse::kFills)) {
      one.last = next++;
    }
    one.is_emptied = use == SlotUse::kEmpties;
    slot = one.last;
  };
  for (ProgramCall& call : program.calls) {
    ForEachSlot(call, number);
    // Which of several comes first hangs on where they lay in memory: ranks differ in it.
    std::ranges::sort(call.clear);
    std::ranges::sort(call.released);
  }
  for (ProgramMemory& memory : program.memory) {
    for (ProgramMemory::Tensor& tensor : memory.tensors) number(tensor.slot, SlotUse::kReads);
  }
  for (ProgramNumber& one : program.numbers) number(one.slot, SlotUse::kReads);
  for (int32_t& slot : program.released_at_end) number(slot, SlotUse::kEmpties);
  program.slots = next;
}

std::vector<ProgramBlock> FindLoops(const Program& program) {
  std::map<Signature, int32_t> known;
  std::vector<int32_t> kinds;
  for (const ProgramCall& call : program.calls) {
    kinds.push_back(
        known.emplace(SignatureOf(call), static_cast<int32_t>(known.size())).first->second);
  }
  std::vector<ProgramBlock> blocks;
  AppendBlocks(kinds, 0, blocks);
  return blocks;
}

}  // namespace etude
