#include "src/sim/machine/machine_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

constexpr std::string_view kFormat = "etude-machine";
constexpr int64_t kVersion = 1;
constexpr std::string_view kMessageName = "message";
constexpr int64_t kMostRanks = 1'000'000;
constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostNanos = 1'000'000'000'000'000;  // eleven days
constexpr double kMostCores = 1e6;
constexpr double kMostRate = 1e15;  // bytes per second

constexpr std::array<DType, 3> kComputedTypes = {DType::kFloat32, DType::kFloat16,
                                                 DType::kBFloat16};

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (size_t i = 1; i < kCollectiveTypeCount; ++i) {
    names.emplace_back(Name(static_cast<CollectiveType>(i)));
  }
  names.emplace_back(kMessageName);
  return names;
}

class MachineFileParser : private TomlReader {
 public:
  MachineFileParser(const toml::table& root, const std::string& path)
      : TomlReader(path), root_(root) {}

  Result<MachineFile> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        root_, "a machine file",
        {"format", "version", "machine", "network", "communication", "check", "computation"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kFormat, kVersion));
    ETUDE_RETURN_IF_ERROR(ReadMachine());
    ETUDE_RETURN_IF_ERROR(ReadNetwork());
    ETUDE_RETURN_IF_ERROR(
        ForEachTable("communication", [this](const toml::table& table) { return Series(table); }));
    ETUDE_RETURN_IF_ERROR(
        ForEachTable("check", [this](const toml::table& table) { return Check(table); }));
    ETUDE_RETURN_IF_ERROR(ForEachTable(
        "computation", [this](const toml::table& table) { return Computation(table); }));
    return std::move(file_);
  }

 private:
  Status ReadMachine() {
    const toml::node* node = root_.get("machine");
    if (node == nullptr) return BadInput(path() + ": missing [machine]");
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "machine", "a table: [machine]");
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        *table, "[machine]", {"backend", "device", "cores", "cpu", "system", "torch", "gpu"}));
    MeasuredMachine& machine = file_.machine;
    ETUDE_ASSIGN_OR_RETURN(machine.backend, RequiredText(*table, "backend", "[machine]"));
    ETUDE_ASSIGN_OR_RETURN(machine.device, RequiredText(*table, "device", "[machine]"));
    if (const toml::node* cores = table->get("cores")) {
      ETUDE_ASSIGN_OR_RETURN(machine.cores, Positive(*cores, "cores"));
    }
    for (const auto& [key, target] : {std::pair("cpu", &machine.cpu),
                                      {"system", &machine.system},
                                      {"torch", &machine.torch},
                                      {"gpu", &machine.gpu}}) {
      const toml::node* text = table->get(key);
      if (text == nullptr) continue;
      ETUDE_ASSIGN_OR_RETURN(*target, Text(*text, key));
    }
    return {};
  }

  Status ReadNetwork() {
    const toml::node* node = root_.get("network");
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "network", "a table: [network]");
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "[network]",
                                    {"latency_ns", "handling_ns", "bytes_per_second",
                                     "shared_bytes_per_second", "added_bytes_per_second"}));
    FittedNetwork network;
    for (const auto& [key, target] :
         {std::pair("latency_ns", &network.latency_ns), {"handling_ns", &network.handling_ns}}) {
      const toml::node* nanos = table->get(key);
      if (nanos == nullptr) return Wrong(*table, fmt::format("missing '{}'", key));
      ETUDE_ASSIGN_OR_RETURN(*target, Whole(*nanos, key, 0, kMostNanos));
    }
    const auto rate = [&](std::string_view key) -> Result<std::optional<double>> {
      const toml::node* number = table->get(key);
      if (number == nullptr) return std::nullopt;
      const std::optional<double> value = number->value<double>();
      if (!number->is_number() || !value) return WrongType(*number, key, "a number");
      if (*value >= 1 && *value <= kMostRate) return value;
      return Wrong(*number, fmt::format("{}: found {}, expected 1 to {}", key, *value, kMostRate));
    };
    ETUDE_ASSIGN_OR_RETURN(const std::optional<double> link, rate("bytes_per_second"));
    if (!link) return Wrong(*table, "missing 'bytes_per_second'");
    network.bytes_per_second = *link;
    ETUDE_ASSIGN_OR_RETURN(network.shared_bytes_per_second, rate("shared_bytes_per_second"));
    ETUDE_ASSIGN_OR_RETURN(network.added_bytes_per_second, rate("added_bytes_per_second"));
    file_.network = network;
    return {};
  }

  template <typename Read>
  Status ForEachTable(std::string_view key, Read read) {
    const toml::node* node = root_.get(key);
    if (node == nullptr) return {};
    const std::string expected = fmt::format("a list of tables: [[{}]]", key);
    const toml::array* list = node->as_array();
    if (list == nullptr) return WrongType(*node, key, expected);
    for (const toml::node& one : *list) {
      if (!one.is_table()) return WrongType(one, key, expected);
      ETUDE_RETURN_IF_ERROR(read(*one.as_table()));
    }
    return {};
  }

  Status Series(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(table, "a communication",
                  {"type", "ranks", "noisy", "bytes", "time_ns", "spread", "cores"}));
    MeasuredSeries series;
    ETUDE_ASSIGN_OR_RETURN(series.kind, KindOf(table));
    ETUDE_ASSIGN_OR_RETURN(series.ranks, RanksOf(table, series.kind));
    if (file_.Find(series.kind, series.ranks) != nullptr) {
      return Wrong(table, fmt::format("found {} of {} ranks twice, expected it once",
                                      NameOfKind(series.kind), series.ranks));
    }
    if (const toml::node* noisy = table.get("noisy")) {
      ETUDE_ASSIGN_OR_RETURN(series.noisy, Flag(*noisy, "noisy"));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> bytes, Sizes(table));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> times, Times(table, "time_ns", bytes.size()));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<double> spreads,
                           Numbers(table, "spread", bytes.size()));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<double> cores, Numbers(table, "cores", bytes.size()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      series.points.push_back({bytes[i], times[i], spreads[i], cores[i]});
    }
    file_.series.push_back(std::move(series));
    return {};
  }

  Status Check(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(table, "a check", {"type", "ranks", "bytes", "time_ns", "predicted_ns"}));
    MeasuredCheck check;
    ETUDE_ASSIGN_OR_RETURN(check.kind, KindOf(table));
    ETUDE_ASSIGN_OR_RETURN(check.ranks, RanksOf(table, check.kind));
    const std::string what = fmt::format("{} of {} ranks", NameOfKind(check.kind), check.ranks);
    if (file_.Find(check.kind, check.ranks) == nullptr) {
      return Wrong(table, fmt::format("found a check of {}, expected one of a communication in "
                                      "the file",
                                      what));
    }
    if (file_.FindCheck(check.kind, check.ranks) != nullptr) {
      return Wrong(table, fmt::format("found two checks of {}, expected one", what));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> bytes, Sizes(table));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> times, Times(table, "time_ns", bytes.size()));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> predicted,
                           Times(table, "predicted_ns", bytes.size()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      check.points.push_back({bytes[i], times[i], predicted[i]});
    }
    file_.checks.push_back(std::move(check));
    return {};
  }

  Status Computation(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        table, "a computation", {"type", "dtype", "ranks", "noisy", "bytes", "time_ns", "spread"}));
    MeasuredComputation computation;
    ETUDE_ASSIGN_OR_RETURN(computation.type, NamedOf(table, "type", kComputationTypes,
                                                     NameOfComputation, "a computation"));
    ETUDE_ASSIGN_OR_RETURN(computation.dtype,
                           NamedOf(
                               table, "dtype", kComputedTypes,
                               [](DType type) { return Name(type); }, "a computation"));
    const toml::node* ranks = table.get("ranks");
    if (ranks == nullptr) return Wrong(table, "missing 'ranks'");
    ETUDE_ASSIGN_OR_RETURN(computation.ranks, Whole(*ranks, "ranks", 1, kMostRanks));
    if (file_.FindComputation(computation.type, computation.dtype, computation.ranks) != nullptr) {
      return Wrong(table, fmt::format("found {} of {} on {} ranks twice, expected it once",
                                      NameOfComputation(computation.type), Name(computation.dtype),
                                      computation.ranks));
    }
    if (const toml::node* noisy = table.get("noisy")) {
      ETUDE_ASSIGN_OR_RETURN(computation.noisy, Flag(*noisy, "noisy"));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> bytes, Sizes(table));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> times, Times(table, "time_ns", bytes.size()));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<double> spreads,
                           Numbers(table, "spread", bytes.size()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      computation.points.push_back({bytes[i], times[i], spreads[i]});
    }
    file_.computations.push_back(std::move(computation));
    return {};
  }

  // Returns the value of `all` that `key` names.
  template <typename Value, size_t count, typename NameOf>
  Result<Value> NamedOf(const toml::table& table, std::string_view key,
                        const std::array<Value, count>& all, NameOf name_of,
                        std::string_view where) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string found, RequiredText(table, key, where));
    std::vector<std::string> names;
    for (const Value& value : all) {
      names.emplace_back(name_of(value));
      if (names.back() == found) return value;
    }
    return WrongName(*table.get(key), key, found, names);
  }

  Result<MeasuredKind> KindOf(const toml::table& table) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string name, RequiredText(table, "type", "the table"));
    const std::optional<MeasuredKind> kind = KindNamed(name);
    if (!kind) return WrongName(*table.get("type"), "type", name, KindNames());
    return *kind;
  }

  Result<int64_t> RanksOf(const toml::table& table, const MeasuredKind& kind) const {
    const toml::node* node = table.get("ranks");
    if (node == nullptr) return Wrong(table, "missing 'ranks'");
    return Whole(*node, "ranks", 2, kind == kMessageKind ? 2 : kMostRanks);
  }

  Result<const toml::array*> List(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return Wrong(table, fmt::format("missing '{}'", key));
    const toml::array* list = node->as_array();
    if (list == nullptr || list->empty()) return WrongType(*node, key, "a list of numbers");
    return list;
  }

  Result<std::vector<int64_t>> Sizes(const toml::table& table) const {
    ETUDE_ASSIGN_OR_RETURN(const toml::array* list, List(table, "bytes"));
    std::vector<int64_t> sizes;
    for (const toml::node& node : *list) {
      ETUDE_ASSIGN_OR_RETURN(const int64_t size, Whole(node, "bytes", 0, kMostBytes));
      if (!sizes.empty() && size <= sizes.back()) {
        return Wrong(node, fmt::format("bytes: found {} after {}, expected ascending sizes", size,
                                       sizes.back()));
      }
      sizes.push_back(size);
    }
    return sizes;
  }

  // Returns a list of `count` values, read one by one.
  template <typename T, typename Read>
  Result<std::vector<T>> ListOf(const toml::table& table, std::string_view key, size_t count,
                                Read read) const {
    ETUDE_ASSIGN_OR_RETURN(const toml::array* list, List(table, key));
    if (list->size() != count) {
      return Wrong(*list, fmt::format("{}: found {} values, expected {}, as in 'bytes'", key,
                                      list->size(), count));
    }
    std::vector<T> values;
    for (const toml::node& node : *list) {
      ETUDE_ASSIGN_OR_RETURN(values.emplace_back(), read(node));
    }
    return values;
  }

  Result<std::vector<int64_t>> Times(const toml::table& table, std::string_view key,
                                     size_t count) const {
    return ListOf<int64_t>(table, key, count,
                           [&](const toml::node& node) { return Whole(node, key, 0, kMostNanos); });
  }

  Result<std::vector<double>> Numbers(const toml::table& table, std::string_view key,
                                      size_t count) const {
    return ListOf<double>(table, key, count, [&](const toml::node& node) -> Result<double> {
      const std::optional<double> value = node.value<double>();
      if (!node.is_number() || !value) return WrongType(node, key, "numbers");
      if (*value >= 0 && *value <= kMostCores) return *value;
      return Wrong(node, fmt::format("{}: found {}, expected 0 to {}", key, *value, kMostCores));
    });
  }

  const toml::table& root_;
  MachineFile file_;
};

// Appends "key = [1, 2]", the values of all points.
template <typename Points, typename Value>
void AppendList(std::string_view key, const Points& points, Value value, std::string& text) {
  std::vector<std::string> values;
  for (const auto& point : points) values.push_back(value(point));
  text += fmt::format("{} = [{}]\n", key, fmt::join(values, ", "));
}

// Returns a TOML string, which has JSON's escapes. Control characters have no use in these facts.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    const bool is_control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    quoted += is_control ? ' ' : c;
  }
  return quoted + '"';
}

void AppendMachine(const MeasuredMachine& machine, std::string& text) {
  text += "\n[machine]\n";
  text +=
      fmt::format("backend = {}\ndevice = {}\n", Quoted(machine.backend), Quoted(machine.device));
  if (machine.cores) text += fmt::format("cores = {}\n", *machine.cores);
  for (const auto& [key, value] : {std::pair("cpu", &machine.cpu),
                                   {"system", &machine.system},
                                   {"torch", &machine.torch},
                                   {"gpu", &machine.gpu}}) {
    if (!value->empty()) text += fmt::format("{} = {}\n", key, Quoted(*value));
  }
}

void AppendNetwork(const FittedNetwork& network, std::string& text) {
  text += fmt::format("\n[network]\nlatency_ns = {}\nhandling_ns = {}\nbytes_per_second = {}\n",
                      network.latency_ns, network.handling_ns, network.bytes_per_second);
  for (const auto& [key, rate] :
       {std::pair("shared_bytes_per_second", network.shared_bytes_per_second),
        {"added_bytes_per_second", network.added_bytes_per_second}}) {
    if (rate) text += fmt::format("{} = {}\n", key, *rate);
  }
}

}  // namespace

std::string_view NameOfKind(const MeasuredKind& kind) { return kind ? Name(*kind) : kMessageName; }

std::optional<MeasuredKind> KindNamed(std::string_view name) {
  if (name == kMessageName) return kMessageKind;
  const auto type = CollectiveFromOwnName(name);
  if (!type || *type == CollectiveType::kUnknown) return std::nullopt;
  return MeasuredKind(*type);
}

std::string_view NameOfComputation(ComputationType type) {
  switch (type) {
    case ComputationType::kCopy: return "copy";
    case ComputationType::kAddition: return "addition";
    case ComputationType::kProduct: break;
  }
  return "product";
}

double MeasuredComputation::WorkOf(int64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  switch (type) {
    case ComputationType::kCopy: return 2 * size;
    case ComputationType::kAddition: return 3 * size;
    case ComputationType::kProduct: break;
  }
  const double elements = size / static_cast<double>(ElementBytes(dtype).value_or(1));
  return 2 * std::pow(elements, 1.5);  // 2 n³ of n² elements
}

const MeasuredSeries* MachineFile::Find(const MeasuredKind& kind, int64_t ranks) const {
  const auto found = std::ranges::find_if(
      series, [&](const MeasuredSeries& one) { return one.kind == kind && one.ranks == ranks; });
  return found == series.end() ? nullptr : &*found;
}

const MeasuredCheck* MachineFile::FindCheck(const MeasuredKind& kind, int64_t ranks) const {
  const auto found = std::ranges::find_if(
      checks, [&](const MeasuredCheck& one) { return one.kind == kind && one.ranks == ranks; });
  return found == checks.end() ? nullptr : &*found;
}

const MeasuredComputation* MachineFile::FindComputation(ComputationType type, DType dtype,
                                                        int64_t ranks) const {
  const auto found = std::ranges::find_if(computations, [&](const MeasuredComputation& one) {
    return one.type == type && one.dtype == dtype && one.ranks == ranks;
  });
  return found == computations.end() ? nullptr : &*found;
}

Result<MachineFile> ParseMachineFile(std::string_view text, const std::string& path) {
  return ParseToml<MachineFile>(
      text, path, [&](const toml::table& root) { return MachineFileParser(root, path).Run(); });
}

std::string MachineFileText(const MachineFile& file) {
  const auto whole = [](auto member) {
    return [member](const auto& point) { return fmt::format("{}", point.*member); };
  };
  const auto share = [](auto member) {
    return [member](const auto& point) { return fmt::format("{:.4f}", point.*member); };
  };
  std::string text = fmt::format("format = \"{}\"\nversion = {}\n", kFormat, kVersion);
  AppendMachine(file.machine, text);
  if (file.network) AppendNetwork(*file.network, text);
  for (const MeasuredSeries& series : file.series) {
    using Point = MeasuredSeries::Point;
    text += fmt::format("\n[[communication]]\ntype = \"{}\"\nranks = {}\n", NameOfKind(series.kind),
                        series.ranks);
    if (series.noisy) text += "noisy = true\n";
    AppendList("bytes", series.points, whole(&Point::bytes), text);
    AppendList("time_ns", series.points, whole(&Point::time_ns), text);
    AppendList("spread", series.points, share(&Point::spread), text);
    AppendList("cores", series.points, share(&Point::cores), text);
  }
  for (const MeasuredCheck& check : file.checks) {
    using Point = MeasuredCheck::Point;
    text += fmt::format("\n[[check]]\ntype = \"{}\"\nranks = {}\n", NameOfKind(check.kind),
                        check.ranks);
    AppendList("bytes", check.points, whole(&Point::bytes), text);
    AppendList("time_ns", check.points, whole(&Point::time_ns), text);
    AppendList("predicted_ns", check.points, whole(&Point::predicted_ns), text);
  }
  for (const MeasuredComputation& computation : file.computations) {
    using Point = MeasuredComputation::Point;
    text += fmt::format("\n[[computation]]\ntype = \"{}\"\ndtype = \"{}\"\nranks = {}\n",
                        NameOfComputation(computation.type), Name(computation.dtype),
                        computation.ranks);
    if (computation.noisy) text += "noisy = true\n";
    AppendList("bytes", computation.points, whole(&Point::bytes), text);
    AppendList("time_ns", computation.points, whole(&Point::time_ns), text);
    AppendList("spread", computation.points, share(&Point::spread), text);
  }
  return text;
}

}  // namespace etude
