#include "src/standalone/program.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <queue>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace etude {
namespace {

enum class SlotUse : uint8_t { kReads, kFills, kEmpties };

// Calls `fn(int32_t&, SlotUse)` for each slot of a call, in the order of use.
template <typename Call, typename Fn>
void ForEachSlot(Call& call, Fn fn) {
  for (auto& slot : call.clear) fn(slot, SlotUse::kEmpties);
  for (auto& view : call.views) {
    fn(view.base, SlotUse::kReads);
    fn(view.slot, SlotUse::kFills);
  }
  for (auto& copy : call.given) {
    fn(copy.to, SlotUse::kReads);
    fn(copy.from, SlotUse::kReads);
  }
  for (auto& slot : call.inputs) fn(slot, SlotUse::kReads);
  for (auto& slot : call.results) fn(slot, SlotUse::kFills);
  for (auto& copy : call.content) {
    fn(copy.to, SlotUse::kReads);
    fn(copy.from, SlotUse::kReads);
  }
  for (auto& slot : call.released) fn(slot, SlotUse::kEmpties);
}

// Properties that the rounds of a loop must share: all but numbers.
using Signature = std::tuple<int32_t, std::vector<size_t>, std::vector<bool>>;

Signature SignatureOf(const ProgramCall& call) {
  std::vector<bool> there;
  for (const int32_t slot : call.inputs) there.push_back(slot != kNoSlot);
  for (const int32_t slot : call.results) there.push_back(slot != kNoSlot);
  for (const int32_t form : call.fits) there.push_back(form >= 0);
  there.push_back(call.work != kNoWork);
  there.push_back(call.finishes);
  const auto group = [](int32_t number) { return static_cast<size_t>(number - kNoGroup); };
  return {call.op,
          {call.awaited.size(), call.clear.size(), call.views.size(), call.inputs.size(),
           call.results.size(), call.fits.size(), call.given.size(), call.content.size(),
           call.released.size(), group(call.batch_begins), group(call.batch_ends)},
          std::move(there)};
}

// Repeating calls from `begin` to `end`: each has the kind of the one a period later.
struct Repetition {
  size_t begin = 0;
  size_t end = 0;
  size_t period = 0;

  size_t repeats() const { return (end - begin) / period; }
  size_t loop_end() const { return begin + repeats() * period; }
  // Returns the number of lines that a loop saves, less its own line.
  size_t saved() const { return repeats() < 2 ? 0 : (repeats() - 1) * period - 1; }

  // Returns whether `b` is preferred to `a`.
  friend bool operator<(const Repetition& a, const Repetition& b) {
    return std::tuple(a.saved(), b.period, b.begin) < std::tuple(b.saved(), a.period, a.begin);
  }
};

constexpr size_t kLongestPeriod = 4096;

using Repetitions = std::priority_queue<Repetition>;

// Returns the longest repetitions of each period.
Repetitions FindRepetitions(std::span<const int32_t> kinds) {
  Repetitions found;
  const size_t longest = std::min(kLongestPeriod, kinds.size() / 2);
  for (size_t period = 1; period <= longest; ++period) {
    size_t same = 0;
    for (size_t i = 0; i + period <= kinds.size(); ++i) {
      if (i + period < kinds.size() && kinds[i] == kinds[i + period]) {
        ++same;
        continue;
      }
      const Repetition one{.begin = i - same, .end = i + period, .period = period};
      if (one.saved() > 0) found.push(one);
      same = 0;
    }
  }
  return found;
}

// Chooses loops: repeatedly the repetition that saves most lines among the remaining calls.
std::map<size_t, Repetition> ChooseLoops(std::span<const int32_t> kinds) {
  Repetitions found = FindRepetitions(kinds);
  std::map<size_t, Repetition> loops;                // by their begin
  std::map<size_t, size_t> free{{0, kinds.size()}};  // ends of the remaining ranges, by their begin
  while (!found.empty()) {
    const Repetition best = found.top();
    found.pop();
    auto left = free.upper_bound(best.begin);
    if (left != free.begin()) --left;
    if (left != free.end() && left->first <= best.begin && left->second >= best.end) {
      const auto [begin, end] = *left;
      free.erase(left);
      if (begin < best.begin) free.emplace(begin, best.begin);
      if (best.loop_end() < end) free.emplace(best.loop_end(), end);
      loops.emplace(best.begin, best);
      continue;
    }
    for (; left != free.end() && left->first < best.end; ++left) {
      const Repetition part{.begin = std::max(best.begin, left->first),
                            .end = std::min(best.end, left->second),
                            .period = best.period};
      if (part.begin < part.end && part.saved() > 0) found.push(part);
    }
  }
  return loops;
}

void AppendBlocks(std::span<const int32_t> kinds, size_t first, std::vector<ProgramBlock>& blocks) {
  size_t next = 0;
  const auto append_calls = [&](size_t end) {
    for (; next < end; ++next) blocks.push_back({.first = static_cast<uint32_t>(first + next)});
  };
  for (const auto& [begin, loop] : ChooseLoops(kinds)) {
    append_calls(begin);
    ProgramBlock block{.first = static_cast<uint32_t>(first + begin),
                       .period = static_cast<uint32_t>(loop.period),
                       .repeats = static_cast<uint32_t>(loop.repeats())};
    AppendBlocks(kinds.subspan(begin, loop.period), first + begin, block.body);
    blocks.push_back(std::move(block));
    next = loop.loop_end();
  }
  append_calls(kinds.size());
}

// Merges equal numbers into one slot. Whether PyTorch stores them once or several times differs
// between ranks.
void UniteNumbers(Program& program) {
  std::vector<bool> is_kept(static_cast<size_t>(program.slots), true);  // slots that are only read
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

// Calls `fn` for each value of the operator and of its lists, in a fixed order.
template <typename Operator, typename Fn>
void ForEachValue(Operator& op, const Fn& fn) {
  const auto visit = [&](const auto& self, auto& value) -> void {
    fn(value);
    for (auto& item : value.items) self(self, item);
  };
  for (auto& argument : op.arguments) visit(visit, argument.value);
}

// Returns whether the value is an integer that a call can hold.
bool IsSharable(const ProgramValue& value) {
  return value.kind == ProgramValue::Kind::kInt && std::in_range<int32_t>(value.integer);
}

// Returns the operator's integers that a call can hold.
std::vector<int32_t> NumbersOf(const ProgramOperator& op) {
  std::vector<int32_t> numbers;
  ForEachValue(op, [&](const ProgramValue& value) {
    if (IsSharable(value)) numbers.push_back(static_cast<int32_t>(value.integer));
  });
  return numbers;
}

// Returns the operator with `with(k)` in place of the k-th of its NumbersOf.
template <typename With>
ProgramOperator WithNumbers(ProgramOperator op, With with) {
  size_t next = 0;
  ForEachValue(op, [&](ProgramValue& value) {
    if (IsSharable(value)) value = with(next++, value);
  });
  return op;
}

// Operators of one name that differ only in integers.
struct Family {
  ProgramOperator form;  // with 0 for all integers
  std::vector<size_t> members;
};

std::vector<Family> FamiliesOf(const std::vector<ProgramOperator>& operators) {
  std::vector<Family> families;
  std::map<std::string_view, std::vector<size_t>> by_name;  // indices of families
  for (size_t i = 0; i < operators.size(); ++i) {
    ProgramOperator form = WithNumbers(operators[i], [](size_t, const ProgramValue& value) {
      return ProgramValue{.kind = value.kind};
    });
    std::vector<size_t>& alike = by_name[operators[i].name];
    const auto known =
        std::ranges::find_if(alike, [&](size_t one) { return families[one].form == form; });
    if (known != alike.end()) {
      families[*known].members.push_back(i);
      continue;
    }
    alike.push_back(families.size());
    families.push_back({.form = std::move(form), .members = {i}});
  }
  return families;
}

}  // namespace

void ShareOperators(Program& program) {
  constexpr size_t kMany = 16;
  std::vector<ProgramOperator> shared;
  std::vector<std::vector<int32_t>> numbers(program.operators.size());  // integers moved to calls
  std::vector<size_t> shared_of(program.operators.size());
  for (const Family& family : FamiliesOf(program.operators)) {
    const ProgramOperator& first = program.operators[family.members.front()];
    if (family.members.size() < kMany) {
      for (const size_t member : family.members) {
        shared_of[member] = shared.size();
        shared.push_back(program.operators[member]);
      }
      continue;
    }
    const std::vector<int32_t> usual = NumbersOf(first);
    std::vector<bool> differs(usual.size());
    for (const size_t member : family.members) {
      const std::vector<int32_t> own = NumbersOf(program.operators[member]);
      for (size_t k = 0; k < own.size(); ++k) differs[k] = differs[k] || own[k] != usual[k];
    }
    for (const size_t member : family.members) {
      const std::vector<int32_t> own = NumbersOf(program.operators[member]);
      for (size_t k = 0; k < own.size(); ++k) {
        if (differs[k]) numbers[member].push_back(own[k]);
      }
      shared_of[member] = shared.size();
    }
    int64_t next = 0;
    shared.push_back(WithNumbers(first, [&](size_t k, const ProgramValue& value) {
      if (!differs[k]) return value;
      return ProgramValue{.kind = ProgramValue::Kind::kNumber, .integer = next++};
    }));
  }
  std::vector<int32_t> number_of(shared.size(), -1);
  program.operators.clear();
  for (ProgramCall& call : program.calls) {
    const auto op = static_cast<size_t>(call.op);
    call.numbers = numbers[op];
    int32_t& number = number_of[shared_of[op]];
    if (number < 0) {
      number = static_cast<int32_t>(program.operators.size());
      program.operators.push_back(std::move(shared[shared_of[op]]));
    }
    call.op = number;
  }
}

void RenumberSlots(Program& program) {
  UniteNumbers(program);
  struct Numbers {
    int32_t last = kNoSlot;
    bool is_carried =
        false;  // from before the step: one number for all values, which connects the steps
    bool is_emptied = false;  // the next value gets another number, unless carried
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
    // The recorded order depends on memory addresses, which differ between ranks.
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
