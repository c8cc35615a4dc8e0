#include "src/sim/machine/algorithm_rules.h"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/formats/io/toml_reader.h"
#include "src/sim/collective/collective_algorithms.h"

namespace etude {
namespace {

constexpr int64_t kMostRuledRanks = int64_t{1} << 40;
constexpr size_t kMostRules = 10'000;

constexpr CollectiveType kRuledTypes[] = {
    CollectiveType::kAllReduce, CollectiveType::kAllGather, CollectiveType::kReduceScatter,
    CollectiveType::kAllToAll,  CollectiveType::kBroadcast, CollectiveType::kReduce,
    CollectiveType::kGather,    CollectiveType::kScatter,   CollectiveType::kBarrier};

class RulesParser : private TomlReader {
 public:
  RulesParser(const toml::table& root, const std::string& path) : TomlReader(path), root_(root) {}

  Result<std::vector<AlgorithmRule>> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(root_, "the file", {"format", "version", "rule"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, "etude-algorithms", 1));
    const toml::node* node = root_.get("rule");
    if (node == nullptr) return Wrong(root_, "missing [[rule]]");
    const toml::array* list = node->as_array();
    if (list == nullptr || list->empty() || list->size() > kMostRules) {
      return WrongType(*node, "rule", fmt::format("1 to {} tables: [[rule]]", kMostRules));
    }
    std::vector<AlgorithmRule> rules;
    for (const toml::node& one : *list) {
      if (one.as_table() == nullptr) return WrongType(one, "rule", "a table: [[rule]]");
      ETUDE_ASSIGN_OR_RETURN(rules.emplace_back(), Rule(*one.as_table()));
    }
    return rules;
  }

 private:
  Result<AlgorithmRule> Rule(const toml::table& table) const {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(table, "[[rule]]", {"collective", "ranks", "bytes", "algorithm"}));
    AlgorithmRule rule;
    ETUDE_ASSIGN_OR_RETURN(const std::string name, RequiredText(table, "collective", "[[rule]]"));
    std::vector<std::string> names;
    for (const CollectiveType type : kRuledTypes) {
      names.emplace_back(Name(type));
      if (Name(type) == name) rule.type = type;
    }
    if (rule.type == CollectiveType::kUnknown) {
      return WrongName(*table.get("collective"), "collective", name, names);
    }
    if (const toml::node* ranks = table.get("ranks")) {
      const auto whole = [&](const toml::node& one) {
        return Whole(one, "ranks", 1, kMostRuledRanks);
      };
      ETUDE_RETURN_IF_ERROR(
          Range(*ranks, "ranks", "[2, 8]", whole, rule.least_ranks, rule.most_ranks));
    }
    if (const toml::node* bytes = table.get("bytes")) {
      const auto size = [&](const toml::node& one) -> Result<int64_t> {
        if (one.is_integer()) return Whole(one, "bytes", 0, INT64_MAX);
        ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(one, "bytes"));
        const auto parsed = ParseBytes(text);
        if (parsed && parsed->count >= 0) return parsed->count;
        return Wrong(one, fmt::format("bytes: found '{}', expected a size, as in \"64KiB\"", text));
      };
      ETUDE_RETURN_IF_ERROR(
          Range(*bytes, "bytes", "[0, \"64KiB\"]", size, rule.least_bytes, rule.most_bytes));
    }
    const toml::node* algorithm = table.get("algorithm");
    if (algorithm == nullptr) return Wrong(table, "[[rule]]: missing 'algorithm'");
    const toml::array* list = algorithm->as_array();
    if (list == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(rule.choices.emplace_back(), Choice(*algorithm, rule.type));
      return rule;
    }
    if (list->empty()) {
      return WrongType(*algorithm, "algorithm", "a name, or one for each dimension");
    }
    for (const toml::node& one : *list) {
      ETUDE_ASSIGN_OR_RETURN(rule.choices.emplace_back(), Choice(one, rule.type));
    }
    return rule;
  }

  // Reads a list of the least and the most.
  template <typename Read>
  Status Range(const toml::node& node, std::string_view key, std::string_view example, Read read,
               int64_t& least, int64_t& most) const {
    const toml::array* list = node.as_array();
    if (list == nullptr || list->size() != 2) {
      return WrongType(node, key,
                       fmt::format("a list of the least and the most, as in {}", example));
    }
    ETUDE_ASSIGN_OR_RETURN(least, read((*list)[0]));
    ETUDE_ASSIGN_OR_RETURN(most, read((*list)[1]));
    if (least <= most) return {};
    return Wrong(
        node, fmt::format("{}: found {} to {}, expected the smaller one first", key, least, most));
  }

  Result<AlgorithmChoice> Choice(const toml::node& node, CollectiveType type) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(node, "algorithm"));
    const Result<AlgorithmChoice> choice = AlgorithmOfType(name, type);
    if (!choice) return Wrong(node, "algorithm: " + choice.error().message);
    return *choice;
  }

  const toml::table& root_;
};

}  // namespace

std::vector<AlgorithmRule> GlooRules() {
  using enum CollectiveAlgorithm;
  const std::pair<CollectiveType, CollectiveAlgorithm> all[] = {
      {CollectiveType::kAllReduce, kRing},
      {CollectiveType::kAllGather, kRing},
      {CollectiveType::kReduceScatter, kSlicedAllReduce},
      {CollectiveType::kAllToAll, kDirect},
      {CollectiveType::kBroadcast, kBinomialTree},
      {CollectiveType::kReduce, kRing},
      {CollectiveType::kGather, kDirect},
      {CollectiveType::kScatter, kDirect},
      {CollectiveType::kBarrier, kDissemination}};
  std::vector<AlgorithmRule> rules;
  for (const auto& [type, algorithm] : all) {
    // Gloo does not know the network.
    rules.push_back({.type = type, .choices = {{.algorithm = algorithm, .whole = true}}});
  }
  return rules;
}

Status UseAlgorithmRules(const std::string& text, const std::string& name, SimMachine& machine) {
  std::vector<AlgorithmRule> rules = GlooRules();
  if (name != kGlooRules) {
    ETUDE_ASSIGN_OR_RETURN(rules, ParseAlgorithmRules(text, name));
  }
  const size_t dims = machine.dims.size();
  for (AlgorithmRule& rule : rules) {
    if (rule.choices.front().whole) continue;
    if (rule.choices.size() == 1) rule.choices.resize(dims, rule.choices.front());
    if (rule.choices.size() == dims) continue;
    return BadInput(
        fmt::format("{}: found {} algorithms for {}, expected one, or {}, one for each dimension",
                    name, rule.choices.size(), Name(rule.type), dims));
  }
  // Collectives that no rule fits use rings.
  for (const AlgorithmRule& rule : rules) {
    if (!OwnAlgorithm(rule.type)) machine.system.algorithms.try_emplace(rule.type, dims);
  }
  machine.system.rules = std::move(rules);
  machine.system.rules_name = name;
  return {};
}

Result<std::vector<AlgorithmRule>> ParseAlgorithmRules(const std::string& text,
                                                       const std::string& path) {
  return ParseToml<std::vector<AlgorithmRule>>(
      text, path, [&](const toml::table& table) { return RulesParser(table, path).Run(); });
}

Status SpreadAlgorithms(const std::string& path, SimMachine& machine) {
  if (machine.graph == nullptr) return {};
  const size_t dims = machine.dims.size();
  for (auto& [type, choices] : machine.system.algorithms) {
    const bool is_tree = !choices.empty() && type != CollectiveType::kAllReduce &&
                         Info(choices.front().algorithm).alternates;
    if (is_tree) {
      return BadInput(
          fmt::format("{}: found {} for {}, expected an algorithm of it: the trees of "
                      "etude-1 are for all_reduce",
                      path, AlgorithmName(choices.front()), Name(type)));
    }
    if (choices.size() >= dims || choices.empty() || choices.front().whole) continue;
    if (choices.size() > 1) {
      return BadInput(
          fmt::format("{}: found {} algorithms for {}, expected 1 or {}: one for each "
                      "dimension of the network",
                      path, choices.size(), Name(type), dims));
    }
    choices.resize(dims, choices.front());
  }
  return {};
}

}  // namespace etude
