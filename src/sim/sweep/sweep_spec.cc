#include "src/sim/sweep/sweep_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSweepFormat = "etude-sweep";
constexpr int64_t kSweepVersion = 1;
constexpr size_t kMostSweepDepth = 3;  // of a setting's name

constexpr std::array kMeasures = {
    SweepMeasure::kStep,      SweepMeasure::kExposed,     SweepMeasure::kCost,
    SweepMeasure::kBandwidth, SweepMeasure::kNpus,        SweepMeasure::kThroughput,
    SweepMeasure::kMemory,    SweepMeasure::kRankSeconds, SweepMeasure::kEnergy};

// Keys of edits of plans that are not options of `generate`.
constexpr std::array<std::string_view, 2> kPlanEditKeys = {"keep", "global_batch"};

bool IsSection(std::string_view name) {
  return name == "network" || name == "system" || name == "memory" || name == "generate" ||
         name == "whatif";
}

class SweepParser : private TomlReader {
 public:
  SweepParser(const toml::table& root, const std::string& path,
              const SweepGenerateKeys& generate_keys)
      : TomlReader(path), root_(root), generate_keys_(generate_keys) {}

  Result<SweepSpec> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(root_, "a sweep",
                                    {"format", "version", "base", "grid", "point", "plans",
                                     "constraints", "prices", "pareto"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kSweepFormat, kSweepVersion));
    if (const toml::node* base = root_.get("base")) {
      const toml::table* table = base->as_table();
      if (table == nullptr) return WrongType(*base, "base", "a table");
      ETUDE_RETURN_IF_ERROR(ReadSettings(*table, "[base]", {}, spec_.base));
    }
    if (const toml::node* points = root_.get("point")) ETUDE_RETURN_IF_ERROR(ReadPoints(*points));
    if (const toml::node* plans = root_.get("plans")) ETUDE_RETURN_IF_ERROR(ReadPlans(*plans));
    if (const toml::node* grid = root_.get("grid")) {
      const toml::table* table = grid->as_table();
      if (table == nullptr) return WrongType(*grid, "grid", "a table of settings and their values");
      ETUDE_RETURN_IF_ERROR(ReadGrid(*table, {}));
    }
    ETUDE_RETURN_IF_ERROR(CheckPlanKeys());
    std::ranges::stable_sort(axes_, {}, &PlacedAxis::place);
    for (PlacedAxis& axis : axes_) spec_.axes.push_back(std::move(axis.axis));
    ETUDE_RETURN_IF_ERROR(CheckCount());
    if (const toml::node* constraints = root_.get("constraints")) {
      ETUDE_RETURN_IF_ERROR(ReadConstraints(*constraints));
    }
    if (const toml::node* prices = root_.get("prices")) ETUDE_RETURN_IF_ERROR(ReadPrices(*prices));
    if (const toml::node* pareto = root_.get("pareto")) ETUDE_RETURN_IF_ERROR(ReadPareto(*pareto));
    return std::move(spec_);
  }

 private:
  using Path = std::vector<std::string>;
  using Place = std::pair<uint32_t, uint32_t>;  // line, column
  struct PlacedAxis {
    Place place;
    SweepAxis axis;
  };

  static Place PlaceOfKey(const toml::key& key) {
    return {key.source().begin.line, key.source().begin.column};
  }

  // Options of `generate` may use '-' for '_'.
  static Path Below(const Path& path, const toml::key& key) {
    Path below = path;
    below.emplace_back(key.str());
    if (path == Path{"generate"} || path == Path{"whatif"}) {
      std::ranges::replace(below.back(), '-', '_');
    }
    return below;
  }

  // Checks the known keys below `path`. Keys of the system are checked by its parser.
  Status CheckSettingKeys(const toml::table& table, const Path& path, std::string_view where,
                          bool named) const {
    if (path.empty() && named) {
      return CheckKeys(table, where,
                       {"name",      "job",      "groups",     "compute",         "fill_ranks",
                        "generate",  "whatif",   "model",      "machine",         "network",
                        "system",    "memory",   "algorithm",  "algorithms",      "congestion",
                        "routes",    "queues",   "rendezvous", "injection_scale", "straggler",
                        "slow_link", "capacity", "energy"});
    }
    if (path.empty()) {
      return CheckKeys(
          table, where,
          {"job",        "groups",     "compute",  "fill_ranks", "generate",   "whatif",
           "model",      "machine",    "network",  "system",     "memory",     "algorithm",
           "algorithms", "congestion", "routes",   "queues",     "rendezvous", "injection_scale",
           "straggler",  "slow_link",  "capacity", "energy"});
    }
    if (path.size() == 1 && path[0] == "network") {
      return CheckKeys(table, "network", {"topology", "npus_count", "bandwidth", "latency"});
    }
    if (path.size() == 1 && path[0] == "whatif") {
      return CheckWhatIfKeys(table);
    }
    if (path.size() == 1 && path[0] == "generate") return CheckGenerateKeys(table);
    return {};
  }

  // Checks keys, spelled with '_' or '-'.
  Status CheckGenerateKeys(const toml::table& table) const {
    const auto& [known, own, edits] = generate_keys_;
    if (known.empty()) return {};
    for (const auto& [key, value] : table) {
      std::string name(key.str());
      std::ranges::replace(name, '-', '_');
      if (std::ranges::find(known, name) != known.end()) continue;
      const bool is_own = std::ranges::find(own, name) != own.end();
      return BadInput(
          fmt::format("{}: {} of generate{}", PlaceOf(key.source()),
                      is_own ? fmt::format("found '{}'", key.str())
                             : fmt::format("unknown key '{}'", key.str()),
                      is_own ? ", which the sweep sets itself" : MeantOrAll(name, known)));
    }
    return {};
  }

  // Checks the keys of edits: those of recorded jobs, and the options of plans.
  Status CheckWhatIfKeys(const toml::table& table) const {
    std::vector<std::string> known(kRecordedEditKeys.begin(), kRecordedEditKeys.end());
    known.insert(known.end(), kPlanEditKeys.begin(), kPlanEditKeys.end());
    known.insert(known.end(), generate_keys_.edits.begin(), generate_keys_.edits.end());
    for (const auto& [key, value] : table) {
      std::string name(key.str());
      std::ranges::replace(name, '-', '_');
      if (std::ranges::find(known, name) != known.end()) continue;
      return BadInput(fmt::format("{}: unknown key '{}' of whatif{}", PlaceOf(key.source()),
                                  key.str(), MeantOrAll(name, known)));
    }
    return {};
  }

  Status CheckDepth(const toml::node& node, const Path& path) const {
    if (path[0] == "generate" && path.size() == 2 && node.is_table()) {
      return WrongType(node, fmt::format("{}", fmt::join(path, ".")), "an option's value");
    }
    const bool deep = path.size() > kMostSweepDepth;
    if (!deep && (path.size() < 2 || IsSection(path[0]))) return {};
    return WrongType(node, path[0],
                     deep ? "a value" : "text or a number: this setting has no sub-settings");
  }

  // Reads a table of settings.
  Status ReadSettings(const toml::table& table, std::string_view where, const Path& path,
                      std::vector<SweepSetting>& settings) const {
    ETUDE_RETURN_IF_ERROR(CheckSettingKeys(table, path, where, where == "[[point]]"));
    for (const auto& [key, value] : table) {
      if (path.empty() && key.str() == "name") continue;
      const Path below = Below(path, key);
      ETUDE_RETURN_IF_ERROR(ReadSetting(value, below, where, settings));
    }
    return {};
  }

  Status ReadSetting(const toml::node& node, const Path& path, std::string_view where,
                     std::vector<SweepSetting>& settings) const {
    ETUDE_RETURN_IF_ERROR(CheckDepth(node, path));
    if (const toml::table* table = node.as_table()) {
      if (!IsSection(path[0])) return WrongType(node, path[0], "text or a number");
      return ReadSettings(*table, where, path, settings);
    }
    ETUDE_ASSIGN_OR_RETURN(Json value, ValueOf(node, fmt::format("{}", fmt::join(path, "."))));
    ETUDE_RETURN_IF_ERROR(CheckValue(node, path, value));
    settings.push_back({.path = path, .value = std::move(value), .place = PlaceOf(node)});
    return {};
  }

  // Reads a text, a number, a bool, or a list of them.
  Result<Json> ValueOf(const toml::node& node, const std::string& key, bool in_list = false) const {
    if (const auto* text = node.as_string()) {
      if (text->get().empty()) return Wrong(node, fmt::format("{}: found an empty table", key));
      return Json(text->get());
    }
    if (const auto* whole = node.as_integer()) return Json(whole->get());
    if (const auto* number = node.as_floating_point()) {
      if (!std::isfinite(number->get())) {
        return Wrong(node, fmt::format("{}: expected a finite number", key));
      }
      return Json(number->get());
    }
    if (const auto* flag = node.as_boolean()) return Json(flag->get());
    const toml::array* list = node.as_array();
    if (list == nullptr || in_list) {
      return WrongType(node, key,
                       in_list ? "text or numbers" : "text, a number, or a list of them");
    }
    Json values = Json::array();
    for (const toml::node& one : *list) {
      ETUDE_ASSIGN_OR_RETURN(Json value, ValueOf(one, key, /*in_list=*/true));
      values.push_back(std::move(value));
    }
    if (values.empty()) return Wrong(node, fmt::format("{}: found an empty list", key));
    return values;
  }

  // Checks values of the sweep's own settings. Values in ASTRA-sim files are checked by their
  // parsers.
  Status CheckValue(const toml::node& node, const Path& path, const Json& value) const {
    if (path.size() == 2 && path[0] == "whatif") {
      const std::string& edit = path[1];
      constexpr auto kCounts =
          std::to_array<std::string_view>({"layers", "dp", "tp", "pp", "micro_batches"});
      constexpr auto kSizes = std::to_array<std::string_view>(
          {"batch", "sequence", "hidden", "heads", "ffn", "vocab", "global_batch"});
      if (std::ranges::find(kSizes, edit) != kSizes.end()) {
        return StatusOf(Whole(node, edit, 1, int64_t{1} << 40));
      }
      if (std::ranges::find(kCounts, edit) != kCounts.end()) {
        return StatusOf(Whole(node, edit, 1, 1 << 20));
      }
      if (edit == "no_gaps") return StatusOf(Flag(node, edit));
      if (edit == "keep") {
        if (value == "rank-batch" || value == "global-batch") return {};
        return WrongType(node, edit, "\"rank-batch\" or \"global-batch\"");
      }
      // Values of options are checked with the jobs that they edit.
      const bool is_bytes = edit == "bucket" || edit == "first_bucket";
      if (!is_bytes &&
          std::ranges::find(generate_keys_.edits, edit) != generate_keys_.edits.end()) {
        return value.is_primitive() ? Status() : WrongType(node, edit, "text or a number");
      }
      return value.is_string() ? Status() : WrongType(node, path[1], "text");
    }
    if (path.size() > 1) return {};
    const std::string& key = path[0];
    if (key == "whatif") return WrongType(node, key, "a table, as in { layers = 24, … }");
    if (key == "generate") return WrongType(node, key, "a table, as in { what = \"llm\", … }");
    if (key == "queues") return StatusOf(Whole(node, key, 1, 1024));
    if (key == "injection_scale") return StatusOf(Whole(node, key, 0, 1'000'000));
    if (key == "rendezvous" || key == "fill_ranks") return StatusOf(Flag(node, key));
    if (key == "algorithm") {
      const bool fits =
          value.is_string() || (value.is_array() && std::ranges::all_of(value, [](const Json& one) {
                                  return one.is_string();
                                }));
      return fits ? Status() : WrongType(node, key, "a name, or one for each dimension");
    }
    if (key == "capacity") {
      const auto bytes = ParseBytes(value.is_string() ? value.get<std::string>() : "");
      if (bytes && bytes->count > 0) return {};
      return Wrong(node, fmt::format("capacity: found {}, expected bytes, as in \"80GB\"",
                                     value.is_string() ? TextOf(value) : value.dump()));
    }
    if (!value.is_string()) return WrongType(node, key, "text");
    const auto is_one_of = [&](std::initializer_list<std::string_view> words) -> Status {
      const auto text = value.get<std::string>();
      if (std::ranges::find(words, text) != words.end()) return {};
      return Wrong(node,
                   fmt::format("{}: found '{}', expected {}", key, text, fmt::join(words, " or ")));
    };
    if (key == "congestion") return is_one_of({"unaware", "aware"});
    if (key == "routes") return is_one_of({"hashed", "least-loaded"});
    if (key == "compute") return is_one_of({"durations", "flops"});
    if (key == "model") return is_one_of({"astra-sim-2.0", "etude-1"});
    return {};
  }

  template <typename T>
  static Status StatusOf(const Result<T>& result) {
    if (result) return {};
    return tl::unexpected<Error>(result.error());
  }

  Status ReadPoints(const toml::node& node) {
    const toml::array* points = node.as_array();
    if (points == nullptr || points->empty()) {
      return WrongType(node, "point", "a list of tables: [[point]]");
    }
    PlacedAxis placed{.place = {0, 0}, .axis = {.name = "name", .choices = {}}};
    std::set<std::string> names;
    for (const toml::node& one : *points) {
      const toml::table* table = one.as_table();
      if (table == nullptr) return WrongType(one, "point", "a table: [[point]]");
      SweepChoice choice{.label = fmt::format("{}", placed.axis.choices.size() + 1)};
      if (const toml::node* name = table->get("name")) {
        ETUDE_ASSIGN_OR_RETURN(choice.label, Text(*name, "name"));
      }
      if (!names.insert(choice.label).second) {
        return Wrong(one, fmt::format("name: found another point '{}', expected unique names",
                                      choice.label));
      }
      ETUDE_RETURN_IF_ERROR(ReadSettings(*table, "[[point]]", {}, choice.settings));
      placed.axis.choices.push_back(std::move(choice));
    }
    axes_.push_back(std::move(placed));
    return {};
  }

  // Reads [plans], or each of [[plans]].
  Status ReadPlans(const toml::node& node) {
    constexpr std::string_view kExpected = "a table: [plans], or [[plans]]";
    std::vector<PlanRule> rules;
    const toml::array* list = node.as_array();
    if (list != nullptr && list->empty()) return WrongType(node, "plans", kExpected);
    for (size_t i = 0; i < (list == nullptr ? 1 : list->size()); ++i) {
      const toml::node& one = list == nullptr ? node : (*list)[i];
      if (one.as_table() == nullptr) return WrongType(one, "plans", kExpected);
      ETUDE_ASSIGN_OR_RETURN(PlanRule rule, ReadPlanRule(*one.as_table()));
      rules.push_back(std::move(rule));
    }
    // The sequences of a micro-batch are those of the job, which the editor knows.
    std::optional<int64_t> global_batch;
    if (EditsJob()) {
      for (PlanRule& rule : rules) {
        if (rule.global_batch != rules.front().global_batch) {
          return Wrong(node,
                       "global_batch: found several, expected one for all [[plans]] of a job");
        }
      }
      global_batch = rules.front().global_batch;
      for (PlanRule& rule : rules) rule.global_batch.reset();
    }
    ETUDE_ASSIGN_OR_RETURN(PlanList plans, ListPlans(rules));
    if (plans.plans.empty()) {
      return Wrong(node, fmt::format("plans: none of {} combinations is a plan: {}",
                                     plans.combinations, plans.refusals.front().reason));
    }
    PlacedAxis placed{.place = {0, 1}, .axis = {.name = std::string(kPlanAxis), .choices = {}}};
    const std::vector<std::string> labels = PlanLabels(plans.plans);
    for (size_t i = 0; i < labels.size(); ++i) {
      placed.axis.choices.push_back(
          {.label = labels[i],
           .settings = SettingsOfPlan(plans.plans[i], global_batch, PlaceOf(node))});
    }
    axes_.push_back(std::move(placed));
    spec_.plans = std::move(plans);
    return {};
  }

  // Returns whether [base] names a job, whose plan the plans edit.
  bool EditsJob() const {
    return std::ranges::any_of(
        spec_.base, [](const SweepSetting& setting) { return setting.path == Path{"job"}; });
  }

  std::vector<SweepSetting> SettingsOfPlan(const PlanChoice& plan,
                                           std::optional<int64_t> global_batch,
                                           const std::string& place) const {
    std::vector<SweepSetting> settings;
    const std::string section = EditsJob() ? "whatif" : "generate";
    const auto add = [&](const char* key, std::optional<int64_t> value) {
      if (!value) return;
      settings.push_back({.path = {section, key}, .value = *value, .place = place});
    };
    add("tp", plan.tensor);
    add("cp", plan.context);
    add("pp", plan.pipeline);
    add("dp", plan.data);
    add("ep", plan.expert);
    add("sequences", plan.sequences);
    add("micro_batches", plan.micro_batches);
    add("global_batch", global_batch);
    return settings;
  }

  Result<PlanRule> ReadPlanRule(const toml::table& table) const {
    constexpr int64_t kMax = int64_t{1} << 24;
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        table, "[plans]",
        {"ranks", "devices_per_node", "global_batch", "tp", "cp", "pp", "dp", "ep", "sequences"}));
    PlanRule rule;
    rule.place = PlaceOf(table);
    const toml::node* ranks = table.get("ranks");
    if (ranks == nullptr) return Wrong(table, "missing 'ranks' of [plans]");
    ETUDE_ASSIGN_OR_RETURN(rule.ranks, Whole(*ranks, "ranks", 1, kMax));
    if (const toml::node* node = table.get("devices_per_node")) {
      ETUDE_ASSIGN_OR_RETURN(rule.devices_per_node, Whole(*node, "devices_per_node", 1, kMax));
    }
    if (const toml::node* node = table.get("global_batch")) {
      ETUDE_ASSIGN_OR_RETURN(rule.global_batch, Whole(*node, "global_batch", 1, int64_t{1} << 40));
    }
    const auto read = [&](const char* key, std::vector<int64_t>& values) -> Status {
      const toml::node* node = table.get(key);
      if (node == nullptr) return {};
      ETUDE_ASSIGN_OR_RETURN(values, PlanValues(*node, key, /*all=*/true));
      return {};
    };
    ETUDE_RETURN_IF_ERROR(read("tp", rule.tensor));
    ETUDE_RETURN_IF_ERROR(read("cp", rule.context));
    ETUDE_RETURN_IF_ERROR(read("pp", rule.pipeline));
    ETUDE_RETURN_IF_ERROR(read("dp", rule.data));
    ETUDE_RETURN_IF_ERROR(read("ep", rule.expert));
    if (const toml::node* node = table.get("sequences")) {
      ETUDE_ASSIGN_OR_RETURN(rule.sequences, PlanValues(*node, "sequences", /*all=*/false));
    }
    for (const SweepSetting& setting : spec_.base) {
      if (setting.path == Path{"generate", "sequences"} && setting.value.is_number_integer()) {
        rule.base_sequences = std::max<int64_t>(1, setting.value.get<int64_t>());
      }
    }
    return rule;
  }

  // Reads a number, a list of numbers or, if `all` is set, "all": an empty list.
  Result<std::vector<int64_t>> PlanValues(const toml::node& node, std::string_view key,
                                          bool all) const {
    constexpr int64_t kMax = int64_t{1} << 24;
    const auto* word = node.as_string();
    if (all && word != nullptr && word->get() == "all") return std::vector<int64_t>();
    std::vector<int64_t> values;
    if (const toml::array* list = node.as_array(); list != nullptr && !list->empty()) {
      for (const toml::node& one : *list) {
        ETUDE_ASSIGN_OR_RETURN(values.emplace_back(), Whole(one, key, 1, kMax));
      }
      return values;
    }
    if (!node.is_integer()) {
      return WrongType(
          node, key,
          all ? "a whole number, a list of them, or \"all\"" : "a whole number, or a list of them");
    }
    ETUDE_ASSIGN_OR_RETURN(values.emplace_back(), Whole(node, key, 1, kMax));
    return values;
  }

  // Checks that no other axis sets what plans set; the last one would silently win.
  Status CheckPlanKeys() const {
    if (!spec_.plans) return {};
    std::set<std::string> given;
    for (const PlacedAxis& placed : axes_) {
      if (placed.axis.name != kPlanAxis) continue;
      for (const SweepSetting& setting : placed.axis.choices.front().settings) {
        given.insert(setting.path.back());
      }
    }
    const bool batch = given.contains("micro_batches") || given.contains("global_batch");
    const std::string section = EditsJob() ? "whatif" : "generate";
    for (const PlacedAxis& placed : axes_) {
      if (placed.axis.name == kPlanAxis) continue;
      for (const SweepChoice& choice : placed.axis.choices) {
        for (const SweepSetting& setting : choice.settings) {
          if (setting.path.size() != 2 || setting.path[0] != section) continue;
          const std::string& key = setting.path[1];
          if (!given.contains(key) && !(batch && key == "sequences")) continue;
          return BadInput(fmt::format("{}: {}.{}: also given by [plans], expected in one place",
                                      setting.place, section, key));
        }
      }
    }
    return {};
  }

  Status ReadGrid(const toml::table& table, const Path& path) {
    ETUDE_RETURN_IF_ERROR(CheckSettingKeys(table, path, "[grid]", false));
    for (const auto& [key, value] : table) {
      const Path below = Below(path, key);
      ETUDE_RETURN_IF_ERROR(CheckDepth(value, below));
      if (const toml::table* inner = value.as_table()) {
        ETUDE_RETURN_IF_ERROR(ReadGrid(*inner, below));
        continue;
      }
      const std::string name = fmt::format("{}", fmt::join(below, "."));
      const toml::array* list = value.as_array();
      if (list == nullptr) return WrongType(value, name, "a list of values");
      if (list->empty()) {
        return Wrong(value, name + ": found an empty list, expected a list of values");
      }
      PlacedAxis placed{.place = PlaceOfKey(key), .axis = {.name = name, .choices = {}}};
      std::set<std::string> labels;
      for (const toml::node& one : *list) {
        SweepChoice choice;
        ETUDE_RETURN_IF_ERROR(ReadSetting(one, below, "[grid]", choice.settings));
        choice.label = LabelOf(choice.settings, below.size());
        if (!labels.insert(choice.label).second) {
          return Wrong(one, fmt::format("{}: found {} twice", name, choice.label));
        }
        placed.axis.choices.push_back(std::move(choice));
      }
      axes_.push_back(std::move(placed));
    }
    return {};
  }

  // Returns a label: "50GB/s", "[8, 4]", "topology Ring, npus_count 8".
  static std::string LabelOf(const std::vector<SweepSetting>& settings, size_t depth) {
    std::string label;
    for (const SweepSetting& setting : settings) {
      if (!label.empty()) label += ", ";
      for (size_t i = depth; i < setting.path.size(); ++i) {
        label += setting.path[i];
        label += i + 1 < setting.path.size() ? "." : " ";
      }
      label += TextOf(setting.value);
    }
    return label;
  }
  static std::string TextOf(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump();
    std::string text;
    for (const Json& one : value) {
      text += text.empty() ? "[" : ", ";
      text += TextOf(one);
    }
    return text + "]";
  }

  Status CheckCount() const {
    size_t count = 1;
    for (const SweepAxis& axis : spec_.axes) {
      count *= axis.choices.size();
      if (count > kMostSweepPoints) {
        return BadInput(
            fmt::format("{}: found more than {} points, the maximum", path(), kMostSweepPoints));
      }
    }
    return {};
  }

  Status ReadConstraints(const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return WrongType(node, "constraints", "a table");
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "constraints", {"ranks", "memory", "fits"}));
    if (table->empty()) return Wrong(node, "[constraints]: missing 'ranks', 'memory' or 'fits'");
    SweepConstraints constraints;
    if (const toml::node* ranks = table->get("ranks")) {
      ETUDE_ASSIGN_OR_RETURN(constraints.ranks, PlanValues(*ranks, "ranks", /*all=*/false));
    }
    if (const toml::node* memory = table->get("memory")) {
      ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*memory, "memory"));
      constraints.memory = ParseBytes(text);
      if (!constraints.memory || constraints.memory->count < 1) {
        return Wrong(*memory,
                     fmt::format("memory: found '{}', expected bytes, as in \"80GB\"", text));
      }
    }
    if (const toml::node* fits = table->get("fits")) {
      ETUDE_ASSIGN_OR_RETURN(constraints.fits, Flag(*fits, "fits"));
    }
    spec_.constraints = std::move(constraints);
    return {};
  }

  Result<double> Price(const toml::node& node, std::string_view key) const {
    constexpr double kMost = 1e9;
    const auto price = node.is_number() ? node.value<double>() : std::nullopt;
    if (!price) return WrongType(node, key, "a number, 0 or more");
    if (*price >= 0 && *price <= kMost) return *price;
    return Wrong(node, fmt::format("{}: found {}, expected 0 to {}", key, *price, kMost));
  }

  Status ReadPrices(const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return WrongType(node, "prices", "a table");
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "prices", {"npu", "bandwidth"}));
    if (table->empty()) return Wrong(node, "[prices]: missing 'npu' or 'bandwidth'");
    SweepPrices prices;
    if (const toml::node* npu = table->get("npu")) {
      ETUDE_ASSIGN_OR_RETURN(prices.npu, Price(*npu, "npu"));
    }
    if (const toml::node* bandwidth = table->get("bandwidth")) {
      if (const toml::array* list = bandwidth->as_array()) {
        for (const toml::node& one : *list) {
          ETUDE_ASSIGN_OR_RETURN(prices.bandwidth.emplace_back(), Price(one, "bandwidth"));
        }
      } else {
        ETUDE_ASSIGN_OR_RETURN(prices.bandwidth.emplace_back(), Price(*bandwidth, "bandwidth"));
      }
      if (prices.bandwidth.empty()) {
        return Wrong(*bandwidth, "bandwidth: found an empty list, expected a price");
      }
    }
    spec_.prices = std::move(prices);
    return {};
  }

  Status ReadPareto(const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr) return WrongType(node, "pareto", "a list of at least two measures");
    std::vector<std::string_view> names;
    for (const SweepMeasure measure : kMeasures) names.push_back(Name(measure));
    for (const toml::node& one : *list) {
      ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(one, "pareto"));
      const auto found = std::ranges::find(names, name);
      if (found == names.end()) {
        return Wrong(one,
                     fmt::format("pareto: found '{}', expected {}", name, fmt::join(names, ", ")));
      }
      const SweepMeasure measure = kMeasures[static_cast<size_t>(found - names.begin())];
      if (std::ranges::count(spec_.pareto, measure) != 0) {
        return Wrong(one, fmt::format("pareto: found '{}' twice", name));
      }
      if (measure == SweepMeasure::kCost && !spec_.prices) {
        return Wrong(one, "pareto: 'cost' requires [prices]");
      }
      spec_.pareto.push_back(measure);
    }
    if (list->size() < 2) {
      return Wrong(node, fmt::format("pareto: found {}, expected at least two measures",
                                     list->empty() ? "an empty list" : "one"));
    }
    return {};
  }

  const toml::table& root_;
  const SweepGenerateKeys& generate_keys_;
  std::vector<PlacedAxis> axes_;
  SweepSpec spec_;
};

}  // namespace

std::string_view Name(SweepMeasure measure) {
  switch (measure) {
    case SweepMeasure::kStep: return "step";
    case SweepMeasure::kExposed: return "exposed";
    case SweepMeasure::kCost: return "cost";
    case SweepMeasure::kBandwidth: return "bandwidth";
    case SweepMeasure::kNpus: return "npus";
    case SweepMeasure::kThroughput: return "throughput";
    case SweepMeasure::kMemory: return "memory";
    case SweepMeasure::kRankSeconds: return "rank-seconds";
    case SweepMeasure::kEnergy: return "energy";
  }
  return "";
}

size_t SweepSpec::point_count() const {
  size_t count = 1;
  for (const SweepAxis& axis : axes) count *= axis.choices.size();
  return count;
}

std::vector<size_t> SweepSpec::ChoicesOf(size_t point) const {
  std::vector<size_t> choices(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    choices[i] = point % axes[i].choices.size();
    point /= axes[i].choices.size();
  }
  return choices;
}

size_t SweepSpec::PointOf(const std::vector<size_t>& choices) const {
  size_t point = 0;
  for (size_t i = 0; i < axes.size(); ++i) point = point * axes[i].choices.size() + choices[i];
  return point;
}

Result<SweepSpec> ParseSweep(std::string_view text, const std::string& path,
                             const SweepGenerateKeys& generate_keys) {
  return ParseToml<SweepSpec>(text, path, [&](const toml::table& root) {
    return SweepParser(root, path, generate_keys).Run();
  });
}

}  // namespace etude
