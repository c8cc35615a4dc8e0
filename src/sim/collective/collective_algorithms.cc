#include "src/sim/collective/collective_algorithms.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etude {
namespace {

constexpr std::array<AlgorithmInfo, kAlgorithmCount> kAlgorithms = {{
    {.algorithm = CollectiveAlgorithm::kRing, .name = "ring", .in_files = true},
    {.algorithm = CollectiveAlgorithm::kDirect,
     .name = "direct",
     .in_files = true,
     .reach = AlgorithmReach::kAll,
     .has_window = true},
    {.algorithm = CollectiveAlgorithm::kHalvingDoubling,
     .name = "halvingDoubling",
     .in_files = true,
     .reach = AlgorithmReach::kPowersOfTwo,
     .needs_power_of_two = true},
    {.algorithm = CollectiveAlgorithm::kDoubleBinaryTree,
     .name = "doubleBinaryTree",
     .in_files = true,
     .reach = AlgorithmReach::kAll,
     .needs_power_of_two = true,
     .alternates = true},
    {.algorithm = CollectiveAlgorithm::kInNetwork,
     .name = "inNetwork",
     .in_files = true,
     .reach = AlgorithmReach::kAll,
     .only_graph = true,
     .in_network = true},
    {.algorithm = CollectiveAlgorithm::kBidirectionalRing,
     .name = "bidirectionalRing",
     .in_files = true,
     .only_graph = true},
    {.algorithm = CollectiveAlgorithm::kBruck,
     .name = "bruck",
     .in_files = true,
     .reach = AlgorithmReach::kAll,
     .only_graph = true},
    {.algorithm = CollectiveAlgorithm::kPat,
     .name = "pat",
     .in_files = true,
     .reach = AlgorithmReach::kAll,
     .only_graph = true},
    {.algorithm = CollectiveAlgorithm::kSlicedAllReduce,
     .name = "slicedAllReduce",
     .in_files = true,
     .only_graph = true},
    {.algorithm = CollectiveAlgorithm::kBinomialTree,
     .name = "binomialTree",
     .reach = AlgorithmReach::kByRoot},
    {.algorithm = CollectiveAlgorithm::kDissemination,
     .name = "dissemination",
     .reach = AlgorithmReach::kByRoot},
}};

constexpr bool IsComplete() {
  for (size_t i = 0; i < kAlgorithms.size(); ++i) {
    if (static_cast<size_t>(kAlgorithms[i].algorithm) != i) return false;
  }
  return true;
}
static_assert(IsComplete(), "a row for each algorithm, in their order");

// Returns whether `word` is `name`, whose first letter may be a capital.
bool IsNamed(std::string_view word, std::string_view name) {
  return word.size() == name.size() && !word.empty() && (word[0] | 0x20) == name[0] &&
         word.substr(1) == name.substr(1);
}

// Returns the positive number in `text`; 0 if it is not one.
int64_t WindowIn(std::string_view text) {
  int64_t window = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), window);
  const bool is_number = end.ec == std::errc() && end.ptr == text.data() + text.size();
  return is_number && window > 0 ? window : 0;
}

// Returns "ring, direct, direct4 (with a window), …".
std::string NamesInFiles() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : kAlgorithms) {
    if (!info.in_files) continue;
    names.emplace_back(info.name);
    if (info.has_window) names.push_back(fmt::format("{}4 (with a window)", info.name));
  }
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

// Returns "ring, direct".
std::string JoinedNames(const std::vector<AlgorithmChoice>& choices) {
  std::vector<std::string> names;
  for (const AlgorithmChoice& choice : choices) names.push_back(AlgorithmName(choice));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool AlgorithmInfo::Fits(int64_t members) const {
  return !needs_power_of_two || std::has_single_bit(static_cast<uint64_t>(members));
}

bool AlgorithmInfo::IsFor(CollectiveType type) const {
  using enum CollectiveAlgorithm;
  switch (type) {
    case CollectiveType::kGather:
    case CollectiveType::kScatter: return algorithm == kBinomialTree || algorithm == kDirect;
    case CollectiveType::kReduce:
      return algorithm == kBinomialTree || algorithm == kInNetwork || algorithm == kRing;
    case CollectiveType::kBroadcast: return algorithm == kBinomialTree || algorithm == kInNetwork;
    case CollectiveType::kBarrier: return algorithm == kDissemination || algorithm == kInNetwork;
    case CollectiveType::kAllToAll:
      return in_files && !in_network && algorithm != kBidirectionalRing && algorithm != kPat &&
             algorithm != kSlicedAllReduce;
    case CollectiveType::kReduceScatter: return in_files;
    default: return in_files && algorithm != kSlicedAllReduce;
  }
}

const std::array<AlgorithmInfo, kAlgorithmCount>& AlgorithmTable() { return kAlgorithms; }

std::string AlgorithmName(const AlgorithmChoice& choice) {
  std::string name(Info(choice.algorithm).name);
  if (choice.window) name += std::to_string(*choice.window);
  if (choice.whole) {
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    name = "one" + name;
  }
  return name;
}

Result<AlgorithmChoice> AlgorithmNamed(std::string_view name, std::string_view where) {
  AlgorithmChoice choice;
  std::string_view rest = name;
  if (rest.starts_with("one")) {
    choice.whole = true;
    rest.remove_prefix(3);
  }
  for (const AlgorithmInfo& info : kAlgorithms) {
    if (!info.in_files) continue;
    choice.algorithm = info.algorithm;
    if (IsNamed(rest, info.name)) return choice;
    if (!info.has_window || !IsNamed(rest.substr(0, info.name.size()), info.name)) continue;
    if (const int64_t window = WindowIn(rest.substr(info.name.size())); window > 0) {
      choice.window = window;
      return choice;
    }
  }
  return BadInput(fmt::format("{}: found '{}', expected {}, optionally after the prefix 'one'",
                              where, name, NamesInFiles()));
}

Result<AlgorithmChoice> AlgorithmOfType(std::string_view name, CollectiveType type) {
  const bool is_one = name.starts_with("one");
  std::vector<std::string_view> names;
  for (const AlgorithmInfo& info : kAlgorithms) {
    // ASTRA-sim's trees reduce for all: see AlgorithmInfo::IsFor.
    const bool is_tree = info.alternates && type != CollectiveType::kAllReduce;
    if (!info.IsFor(type) || is_tree) continue;
    names.push_back(info.name);
    if (IsNamed(is_one ? name.substr(3) : name, info.name)) {
      return AlgorithmChoice{.algorithm = info.algorithm, .whole = is_one};
    }
  }
  const Result<AlgorithmChoice> with_window = AlgorithmNamed(name, "");
  if (with_window && !OwnAlgorithm(type) && Info(with_window->algorithm).IsFor(type)) {
    return with_window;
  }
  return BadInput(fmt::format("found '{}', expected for {} {}, optionally after the prefix 'one'",
                              name, Name(type), fmt::join(names, ", ")));
}

AlgorithmChoice ChoiceOf(AlgorithmChoices choices, CollectiveType type, size_t dim) {
  if (choices != nullptr && dim < choices->size()) return (*choices)[dim];
  return {.algorithm = OwnAlgorithm(type).value_or(CollectiveAlgorithm::kRing)};
}

Result<AlgorithmChoice> GroupChoice(const SimMachine& machine, AlgorithmChoices list,
                                    CollectiveType type, std::optional<size_t> line) {
  const AlgorithmChoice usual{.algorithm = OwnAlgorithm(type).value_or(CollectiveAlgorithm::kRing)};
  if (list == nullptr || list->empty()) return usual;
  const std::vector<AlgorithmChoice>& choices = *list;
  if (choices.size() == 1) return choices[0];
  if (machine.graph == nullptr) return usual;
  if (line && *line < choices.size()) return choices[*line];
  if (std::ranges::adjacent_find(choices, std::ranges::not_equal_to{}) == choices.end()) {
    return choices[0];
  }
  return BadInput(fmt::format(
      "found a collective of a group that is no grid of the network's dimensions, and "
      "the algorithms {} by dimension for {}, expected one algorithm for all dimensions",
      JoinedNames(choices), Name(type)));
}

Status CheckAlgorithms(const SimMachine& machine) {
  std::vector<std::pair<CollectiveType, std::vector<AlgorithmChoice>>> all(
      machine.system.algorithms.begin(), machine.system.algorithms.end());
  for (const AlgorithmRule& rule : machine.system.rules) {
    all.emplace_back(rule.type, rule.choices);
  }
  const auto stands_alone = [](const AlgorithmChoice& choice) {
    return choice.whole || choice.algorithm == CollectiveAlgorithm::kSlicedAllReduce;
  };
  for (const auto& [type, choices] : all) {
    const bool differ =
        std::ranges::adjacent_find(choices, std::ranges::not_equal_to{}) != choices.end();
    if (machine.graph != nullptr && differ && std::ranges::any_of(choices, stands_alone)) {
      return BadInput(
          fmt::format("found the algorithms {} for {}, expected no others beside slicedAllReduce "
                      "and those with the prefix 'one'",
                      JoinedNames(choices), Name(type)));
    }
    for (const AlgorithmChoice& choice : choices) {
      const AlgorithmInfo& info = Info(choice.algorithm);
      if (!info.IsFor(type)) {
        return BadInput(fmt::format(
            "found the algorithm {} for {}, expected another one{}", AlgorithmName(choice),
            Name(type), info.in_network ? ": switches cannot reduce or multicast its data" : ""));
      }
      const bool is_own = OwnAlgorithm(type) && OwnAlgorithm(type) != choice.algorithm;
      if (machine.graph == nullptr && (info.only_graph || is_own)) {
        return BadInput(
            fmt::format("found the algorithm {} for {}, which requires --model etude-1{}",
                        AlgorithmName(choice), Name(type),
                        info.in_network ? " and a network with switches" : ""));
      }
    }
  }
  return {};
}

}  // namespace etude
