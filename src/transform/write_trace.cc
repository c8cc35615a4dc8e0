#include "src/transform/write_trace.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/text/ascii.h"
#include "src/base/text/format_count.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/pytorch_et/linked_json_writer.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/run/waits/recorded_waits.h"
#include "src/trace/validator.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

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
  if (trace.traits().is_profile) {
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

// Returns `error` with `source` in its message.
tl::unexpected<Error> ErrorOf(std::string_view source, const Error& error) {
  if (error.code != ErrorCode::kBadInput) return tl::unexpected<Error>(error);
  return BadInput(fmt::format("{}: {}", source, error.message));
}

void WarnOfBrokenCycles(std::string_view source, const Trace& trace, const ToChakraResult& made,
                        const RunContext& context) {
  if (made.broken_edges == 0) return;
  context.Warn(fmt::format(
      "{}: found a cycle of dependencies: {}; left out {} that contradict the program's order",
      source, CycleText(trace), FormatCount(made.broken_edges)));
}

}  // namespace

OutputFormat ChooseFormat(std::string_view word, std::string_view path) {
  if (word == "linked") return OutputFormat::kLinked;
  if (word == "et") return OutputFormat::kChakra;
  path.remove_suffix(CompressionEndingOf(path).size());
  return EndsWithNoCase(path, ".json") ? OutputFormat::kLinked : OutputFormat::kChakra;
}

Result<WrittenTrace> WriteTrace(const Trace& trace, const std::string& path, OutputFormat format,
                                const ToChakraOptions& options, Existing existing) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, existing));
  const auto write = [&]() -> Result<WrittenTrace> {
    if (format == OutputFormat::kChakra) return WriteChakraFile(trace, file, options);
    if (trace.traits().waits_in_times) {
      ETUDE_ASSIGN_OR_RETURN(const Trace linked, WithThreadWaits(trace, options.limits));
      return WriteLinkedFile(linked, file);
    }
    if (trace.stats()[Stat::kDuplicateId] == 0) return WriteLinkedFile(trace, file);
    ETUDE_ASSIGN_OR_RETURN(const Trace renumbered,
                           RewriteTrace(trace, options.limits,
                                        [](RewrittenNode&, TraceBuilder&) { return Status(); }));
    ETUDE_ASSIGN_OR_RETURN(WrittenTrace linked, WriteLinkedFile(renumbered, file));
    linked.renumbered = true;
    return linked;
  };
  Result<WrittenTrace> written = write();
  if (!written) return written;
  ETUDE_RETURN_IF_ERROR(file.Commit());
  written->path = path;
  return written;
}

Result<WrittenTrace> WriteTraceOf(std::string_view source, const Trace& trace,
                                  const TraceOutput& output, const RunContext& context) {
  const ToChakraOptions options{.break_cycles = output.break_cycles, .limits = context.limits};
  Result<WrittenTrace> written =
      WriteTrace(trace, output.path, output.format, options, output.existing);
  if (!written) return ErrorOf(source, written.error());
  WarnOfBrokenCycles(source, trace, written->chakra, context);
  return written;
}

Result<ToChakraResult> ToChakraOf(std::string_view source, const Trace& trace,
                                  const ToChakraOptions& options, const RunContext& context) {
  Result<ToChakraResult> made = ToChakra(trace, options);
  if (!made) return ErrorOf(source, made.error());
  WarnOfBrokenCycles(source, trace, *made, context);
  return made;
}

std::string RankFileName(OutputFormat format, int64_t rank, std::string_view like) {
  if (format == OutputFormat::kChakra) return fmt::format("chakra.{}.et", rank);
  return fmt::format("linked.{}.json{}", rank, CompressionEndingOf(like));
}

}  // namespace etude
