#include "src/sim/machine/fault_text.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/trace/job/straggler.h"

namespace etude {
namespace {

std::optional<SlowLink> LinkOf(std::string_view text) {
  const size_t colon = text.find(':');
  const size_t mark = text.find_first_of("-@");
  if (colon == text.npos || mark == text.npos || mark > colon) return std::nullopt;
  const std::optional<int64_t> npu = ParseWhole(text.substr(0, mark));
  const std::optional<int64_t> second = ParseWhole(text.substr(mark + 1, colon - mark - 1));
  if (!npu || !second || *npu < 0 || *second < 0) return std::nullopt;
  SlowLink link{.npu = *npu};
  if (text[mark] == '-') {
    link.other = *second;
  } else {
    link.dim = static_cast<size_t>(*second);
  }
  std::string_view share = text.substr(colon + 1);
  if (const size_t plus = share.find('+'); plus != share.npos) {
    const std::optional<Nanos> latency = ParseTime(share.substr(plus + 1));
    if (!latency || latency->count < 0) return std::nullopt;
    link.latency = static_cast<double>(latency->count);
    share = share.substr(0, plus);
  }
  const std::optional<double> value = ParseDecimal(share);
  if (!value || !(*value > 0) || *value > 1) return std::nullopt;
  link.share = *value;
  return link;
}

template <typename AddOne>
Status ForEachWord(std::string_view text, AddOne add_one) {
  while (!text.empty() && text != "none") {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == text.npos ? text.size() : blank + 1);
    if (!word.empty()) ETUDE_RETURN_IF_ERROR(add_one(word));
  }
  return {};
}

}  // namespace

Status AddStragglers(std::string_view text, SimMachine& machine) {
  return ForEachWord(text, [&](std::string_view word) -> Status {
    const std::optional<Straggler> straggler = ParseStraggler(word);
    if (!straggler) {
      return BadInput(
          fmt::format("found '{}', expected a rank and its slowdown factor, such as 3:1.5", word));
    }
    if (!machine.stragglers.emplace(straggler->rank, straggler->factor).second) {
      return BadInput(fmt::format("found rank {} twice", straggler->rank));
    }
    return {};
  });
}

Status AddSlowLinks(std::string_view text, SimMachine& machine) {
  return ForEachWord(text, [&](std::string_view word) -> Status {
    const std::optional<SlowLink> link = LinkOf(word);
    if (!link) {
      return BadInput(fmt::format(
          "found '{}', expected two NPUs and a share of the bandwidth above 0 and up to 1, such as "
          "0-1:0.5 or, with extra latency, 0-1:0.5+2us; or an NPU and a dimension, such as 3@0:0.5",
          word));
    }
    machine.slow_links.push_back(*link);
    return {};
  });
}

}  // namespace etude
