#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/transform/write_trace.h"

namespace etude {

// Works like ChooseFormat, but standard output is linked JSON unless `to` is given.
OutputFormat FormatOf(const std::string& to, const std::string& path);

// Returns whether `path` exists, and false if this cannot be determined.
bool IsThere(const std::string& path);

// Returns the absolute path of `path`, without "." and "..".
Result<std::string> AbsolutePath(const std::string& path);

// Creates the folder at `path`, and those above it, if it is missing. Returns whether it was
// missing.
Result<bool> MakeFolder(const std::string& path);

// Creates a new folder for temporary files, whose name consists of `name` and a unique suffix.
Result<std::string> MakeTemporaryFolder(std::string_view name);

// Returns kUsage if `command` would write its result into its own input folder.
Status CheckOtherFolder(std::string_view command, const std::string& input,
                        const std::string& output);

// Writes a measurement to its file. If the folder is not writable, the result is not lost, and a
// warning is issued.
void KeepResult(const std::string& path, const std::string& text, const RunContext& context);

// Writes a graph for simulators unchanged.
Result<ChakraWriteReport> WriteChakraFile(const Trace& trace, const std::string& path);

// With more ranks than this, writing a file for each rank takes hours.
inline constexpr int64_t kMostRankFiles = int64_t{1} << 18;

// Returns kUsage if PREFIX.0.et … would be written next to files of an earlier job with more ranks,
// or with groups if this one has none, because simulators would take these for a part. Also returns
// kUsage next to a job in classes, because it represents the folder.
Status CheckNoOtherJob(const std::string& prefix, int64_t ranks, bool has_groups);
// Returns kUsage if a job in classes would be written into a folder with other traces.
Status CheckNoTraces(const std::string& folder, const RunContext& context);
// Parts of the check above: the first file BEFORE + rank + AFTER of a rank from `ranks` on, and the
// error.
std::optional<std::string> RankFileBeyond(const std::string& before, const std::string& after,
                                          int64_t ranks);
tl::unexpected<Error> OtherJob(const std::string& path, int64_t ranks);

// Returns the name of the file of process groups for PREFIX.0.et ….
std::string GroupsFileName(const std::string& prefix);

// Writes the ranks of process groups by id, in the form that ASTRA-sim reads.
Status WriteGroupsFile(const std::map<int64_t, std::vector<int64_t>>& groups,
                       const std::string& path);

}  // namespace etude
