#include "src/cli/trace_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "src/formats/atomic_file.h"
#include "src/formats/chakra_writer.h"
#include "src/formats/chrome_writer.h"
#include "src/formats/linked_json_writer.h"
#include "src/report/format.h"

namespace etude {
namespace {

bool EndsWith(std::string_view path, std::string_view ending) {
  const auto same = [](unsigned char a, char b) { return std::tolower(a) == b; };
  return path.size() >= ending.size() &&
         std::ranges::equal(path.substr(path.size() - ending.size()), ending, same);
}

constexpr std::string_view kCompressions[] = {".gz", ".zst"};

std::string_view CompressionEnding(std::string_view path) {
  for (const std::string_view ending : kCompressions) {
    if (EndsWith(path, ending)) return ending;
  }
  return {};
}

Result<WrittenTrace> WriteChakraFile(const Trace& trace, AtomicFile& file,
                                     const ToChakraOptions& options) {
  ETUDE_ASSIGN_OR_RETURN(ToChakraResult chakra, ToChakra(trace, options));
  const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
  ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report, WriteChakra(chakra.trace, {}, sink));
  chakra.trace = Trace();
  return WrittenTrace{.nodes = report.nodes,
                      .bytes = report.bytes,
                      .renumbered = report.renumbered || chakra.renumbered,
                      .lost_references = report.dropped_references,
                      .clipped_times = report.clipped_times,
                      .is_chakra = true,
                      .chakra = std::move(chakra)};
}

Result<WrittenTrace> WriteLinkedFile(const Trace& trace, AtomicFile& file) {
  const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
  if (trace.info().format == TraceFormat::kKineto) {
    // A profile without a host trace stays one: linked traces have no words for its events.
    ETUDE_ASSIGN_OR_RETURN(const TimelineReport profile, WriteProfile(trace, sink));
    return WrittenTrace{
        .nodes = profile.slices, .bytes = profile.bytes, .lost_references = trace.dep_count()};
  }
  ETUDE_ASSIGN_OR_RETURN(const LinkedWriteReport report, WriteLinkedJson(trace, sink));
  return WrittenTrace{.nodes = report.nodes,
                      .bytes = report.bytes,
                      .renumbered = report.renumbered,
                      .lost_references = report.lost_edges,
                      .lost_extras = report.lost_extras};
}

}  // namespace

OutputFormat ChooseFormat(std::string_view word, std::string_view path) {
  if (word == "linked") return OutputFormat::kLinked;
  if (word == "et") return OutputFormat::kChakra;
  path.remove_suffix(CompressionEnding(path).size());
  return EndsWith(path, ".json") ? OutputFormat::kLinked : OutputFormat::kChakra;
}

Status CheckOutput(const std::string& output, std::initializer_list<std::string> inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input.empty() || output == "-" || !std::filesystem::is_regular_file(output, error))
      continue;
    if (!std::filesystem::equivalent(input, output, error) || error) continue;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("-o {}: is the input {}, expected another file", output, input));
  }
  return {};
}

Result<WrittenTrace> WriteTrace(const Trace& trace, const std::string& path, OutputFormat format,
                                const ToChakraOptions& options) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  Result<WrittenTrace> written = format == OutputFormat::kChakra
                                     ? WriteChakraFile(trace, file, options)
                                     : WriteLinkedFile(trace, file);
  if (!written) return written;
  ETUDE_RETURN_IF_ERROR(file.Commit());
  written->path = path;
  return written;
}

nlohmann::ordered_json ToJson(const WrittenTrace& written) {
  nlohmann::ordered_json json = {{"path", written.path},
                                 {"nodes", written.nodes},
                                 {"bytes", written.bytes},
                                 {"renumbered", written.renumbered},
                                 {"lost_references", written.lost_references},
                                 {"lost_extras", written.lost_extras},
                                 {"clipped_times", written.clipped_times}};
  if (written.is_chakra) {
    json["added_edges"] = {{"host_order", written.chakra.order_edges},
                           {"stream_order", written.chakra.stream_edges},
                           {"launch", written.chakra.launch_edges}};
    json["contradictions"] = written.chakra.contradictions;
    json["adopted"] = written.chakra.adopted;
    json["broken_edges"] = written.chakra.broken_edges;
    json["host_communications_done_by_devices"] = written.chakra.retyped;
  }
  return json;
}

std::string ToText(const WrittenTrace& written) {
  std::string text =
      fmt::format("wrote {}: {} nodes, {}\n", written.path, FormatCount(written.nodes),
                  FormatBytes(Bytes{static_cast<int64_t>(written.bytes)}));
  const auto line = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("  {}: {}\n", what, FormatCount(count));
  };
  if (written.is_chakra) {
    const ToChakraResult& chakra = written.chakra;
    line(chakra.order_edges, "dependencies added, order of the host threads");
    line(chakra.stream_edges, "dependencies added, order of the device streams");
    line(chakra.launch_edges, "dependencies added, device work on its operator");
    line(chakra.contradictions,
         "of these left out because the trace's own dependencies say otherwise");
    line(chakra.adopted, "host nodes without their caller, put below their thread");
    line(chakra.broken_edges, "dependencies taken out of cycles");
    line(chakra.retyped, "host communications that a device node does, now plain operators");
  }
  if (written.renumbered) text += "  ids were not unique: nodes have new ones\n";
  line(written.lost_references, "references lost, to nodes that are not there or without a place");
  line(written.lost_extras, "facts lost that the format cannot hold");
  line(written.clipped_times, "times before the clock's zero, which only Etude's attributes hold");
  return text;
}

std::string RankFileName(OutputFormat format, int64_t rank, std::string_view like) {
  if (format == OutputFormat::kChakra) return fmt::format("chakra.{}.et", rank);
  return fmt::format("linked.{}.json{}", rank, CompressionEnding(like));
}

}  // namespace etude
