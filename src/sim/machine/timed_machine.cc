#include "src/sim/machine/timed_machine.h"

#include <utility>

#include "src/formats/io/toml_reader.h"
#include "src/sim/machine/measured_times.h"
#include "src/sim/nccl/nccl_file.h"
#include "src/sim/nccl/nccl_times.h"

namespace etude {
namespace {

class NcclFileParser : private TomlReader {
 public:
  explicit NcclFileParser(const std::string& path) : TomlReader(path) {}

  // Returns nullopt for a file without the table [nccl].
  Result<std::optional<NcclMachine>> Run(const toml::table& root) {
    const toml::node* node = root.get("nccl");
    if (node == nullptr) return std::nullopt;
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(root, "a machine file with [nccl]", {"format", "version", "nccl"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root, "etude-machine", 1));
    if (!node->is_table()) return WrongType(*node, "nccl", "a table: [nccl]");
    return ParseNcclMachine(*node->as_table(), path());
  }
};

}  // namespace

Result<TimedMachine> ParseTimedMachine(std::string_view text, const std::string& path) {
  ETUDE_ASSIGN_OR_RETURN(
      std::optional<NcclMachine> nccl,
      ParseToml<std::optional<NcclMachine>>(
          text, path, [&](const toml::table& root) { return NcclFileParser(path).Run(root); }));
  if (nccl) {
    ETUDE_ASSIGN_OR_RETURN(NcclTimes times, NcclTimes::Create(*std::move(nccl)));
    return TimedMachine{.times = std::make_shared<const NcclTimes>(std::move(times)), .cores = {}};
  }
  ETUDE_ASSIGN_OR_RETURN(MeasuredTimes times, MeasuredTimes::Parse(text, path));
  const std::optional<double> cores = times.cores();
  return TimedMachine{.times = std::make_shared<const MeasuredTimes>(std::move(times)),
                      .cores = cores};
}

}  // namespace etude
