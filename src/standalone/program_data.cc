#include "src/standalone/program_data.h"

#include <string_view>

#include <fmt/format.h>

namespace etude {
namespace {

std::string_view NameOf(MemoryFill::Kind fill) {
  using Fill = MemoryFill::Kind;
  switch (fill) {
    case Fill::kNormal: return "normal";
    case Fill::kUniform: return "uniform";
    case Fill::kConstant: return "constant";
    case Fill::kBytes: return "bytes";
    case Fill::kIndex: return "index";
    case Fill::kOffsets: return "offsets";
    case Fill::kSteps: return "steps";
    case Fill::kLengths: return "lengths";
    case Fill::kMask: return "mask";
    case Fill::kDistinct: return "distinct";
    case Fill::kCoin: return "coin";
  }
  return {};
}

template <typename Numbers>
void Append(const Numbers& numbers, std::string& text) {
  for (const auto number : numbers) text += fmt::format(" {}", number);
}

}  // namespace

std::string ProgramData(const Program& program, const std::vector<std::vector<int32_t>>& tables) {
  const ProgramCoverage& coverage = program.coverage;
  std::string text = fmt::format(
      "benchmark 3\ncovers {} {} {}\nthreads {}\nheap {} {} {}\nslots {}\n", coverage.operators,
      coverage.operators_run, coverage.time ? fmt::format("{:.4f}", *coverage.time) : "unknown",
      program.threads, program.heap.map_threshold, program.heap.keeps_freed ? 1 : 0,
      program.heap.given_back, program.slots);
  text += fmt::format("forms {}\n", program.forms.size());
  for (const TensorForm& form : program.forms) {
    text += fmt::format("{} {} {}", form.dtype, form.offset, form.sizes.size());
    Append(form.sizes, text);
    Append(form.strides, text);
    text += '\n';
  }
  text += fmt::format("memory {}\n", program.memory.size());
  for (const ProgramMemory& memory : program.memory) {
    text +=
        fmt::format("{} {} {} {} {} {} {} {} {}", memory.bytes, memory.dtype,
                    NameOf(memory.fill.kind), memory.fill.real, memory.fill.low, memory.fill.high,
                    memory.restored ? 1 : 0, memory.state ? 1 : 0, memory.tensors.size());
    for (const ProgramMemory::Tensor& tensor : memory.tensors) {
      text += fmt::format(" {} {}", tensor.slot, tensor.form);
    }
    text += '\n';
  }
  text += fmt::format("numbers {}\n", program.numbers.size());
  for (const ProgramNumber& number : program.numbers) {
    const bool is_real = number.value.kind == ProgramValue::Kind::kDouble;
    const bool is_bool = number.value.kind == ProgramValue::Kind::kBool;
    text += fmt::format("{} {} ", number.slot, is_real ? "float" : is_bool ? "bool" : "int");
    text += is_real ? fmt::format("{}\n", number.value.real)
                    : fmt::format("{}\n", number.value.integer);
  }
  text += fmt::format("released {}", program.released_at_end.size());
  Append(program.released_at_end, text);
  text += fmt::format("\ntables {}\n", tables.size());
  for (const std::vector<int32_t>& table : tables) {
    text += fmt::format("{}", table.size());
    Append(table, text);
    text += '\n';
  }
  return text;
}

std::string GapData(const Program& program) {
  if (program.gaps.empty()) return "";
  std::string text = fmt::format("gaps 1\ncalls {}\n", program.calls.size());
  for (const ProgramGap& gap : program.gaps) {
    text += fmt::format("{} {}\n", gap.idle.count, gap.busy.count);
  }
  return text;
}

}  // namespace etude
