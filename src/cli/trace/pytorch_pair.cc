#include "src/cli/trace/pytorch_pair.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/io/atomic_file.h"
#include "src/formats/pytorch_et/linked_json_writer.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

// A trace, and the source of its profile.
struct Source {
  Trace trace;
  std::optional<Trace> profile;  // nullopt: the trace itself
  int64_t rank = 0;
};

struct Pair {
  std::string host;
  std::string device;
  LinkedWriteReport nodes;
  TimelineReport events;
};

Result<Source> ReadSource(const RankInput& input, bool is_only_one, const Console& console) {
  // A native capture and its device profile give one profile, including runtime calls, which linked
  // traces lack.
  const ReadOptions options{.strict = console.strict()};
  RankInput host = input;
  std::optional<Trace> profile;
  if (!input.device.empty()) {
    ETUDE_ASSIGN_OR_RETURN(const bool native, IsNative(input.path, console.context()));
    if (native) {
      host.as_profile = true;
      ETUDE_ASSIGN_OR_RETURN(profile, ReadRank(host, options, console.context()));
      host.device.clear();
    }
  }
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadRank(host, options, console.context()));
  std::optional<int64_t> rank = trace.info().rank ? trace.info().rank : input.rank;
  if (!rank && is_only_one) rank = 0;
  if (!rank)
    return BadInput(
        input.path +
        ": found one of several traces without a rank, expected a rank in its name or content");
  return Source{.trace = std::move(trace), .profile = std::move(profile), .rank = *rank};
}

// Writes both files or none.
Result<Pair> WritePair(const Source& source, const RankInput& input, const std::string& folder) {
  Pair pair{.host = fmt::format("{}/host.{}.json", folder, source.rank),
            .device = fmt::format("{}/device.{}.json", folder, source.rank)};
  for (const std::string& target : {pair.host, pair.device}) {
    ETUDE_RETURN_IF_ERROR(CheckOutput(target, {input.path, input.device}));
  }
  ETUDE_ASSIGN_OR_RETURN(AtomicFile host, AtomicFile::Create(pair.host, Existing::kReplace));
  ETUDE_ASSIGN_OR_RETURN(AtomicFile device, AtomicFile::Create(pair.device, Existing::kReplace));
  const auto to = [](AtomicFile& file) {
    return [&file](std::string_view bytes) { return file.Write(bytes); };
  };
  const Trace& profile = source.profile ? *source.profile : source.trace;
  ETUDE_ASSIGN_OR_RETURN(pair.nodes, WriteExecutionTrace(source.trace, to(host)));
  ETUDE_ASSIGN_OR_RETURN(pair.events, WriteProfile(profile, to(device)));
  ETUDE_RETURN_IF_ERROR(host.Commit());
  ETUDE_RETURN_IF_ERROR(device.Commit());
  return pair;
}

std::string ToText(const Pair& pair) {
  std::string text =
      fmt::format("wrote {}: {}, and {}: {}\n", pair.host, FormatCount(pair.nodes.nodes, "node"),
                  pair.device, FormatCount(pair.events.slices, "event"));
  if (pair.events.untimed != 0) {
    text += fmt::format("  nodes without times, which have no event: {}\n",
                        FormatCount(pair.events.untimed));
  }
  return text;
}

}  // namespace

Result<ExitCode> WritePyTorchPairs(const PyTorchPairRequest& request, const Console& console) {
  if (request.output.empty() || request.output == "-") {
    return MakeError(ErrorCode::kUsage, "convert: --to pytorch requires -o FOLDER");
  }
  ETUDE_RETURN_IF_ERROR(MakeFolder(request.output));
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::string text;
  for (const RankInput& input : request.inputs) {
    ETUDE_ASSIGN_OR_RETURN(const Source source,
                           ReadSource(input, request.inputs.size() == 1, console));
    ETUDE_ASSIGN_OR_RETURN(const Pair pair, WritePair(source, input, request.output));
    text += ToText(pair);
    files.push_back({{"rank", source.rank},
                     {"input", input.path},
                     {"host", pair.host},
                     {"device", pair.device},
                     {"nodes", pair.nodes.nodes},
                     {"events", pair.events.slices},
                     {"untimed", pair.events.untimed}});
  }
  if (request.json) {
    const nlohmann::ordered_json json = {
        {"format", "etude-convert-pytorch"}, {"version", 1}, {"files", files}};
    text = JsonText(json);
  }
  console.Print(text);
  return ExitCode::kOk;
}

}  // namespace etude
