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

// As ChooseFormat, but that standard output is linked JSON unless `to` says otherwise.
OutputFormat FormatOf(const std::string& to, const std::string& path);

// Whether there is something at `path`: not where that cannot be told, either.
bool IsThere(const std::string& path);

// `path` from the root, without "." and "..".
Result<std::string> AbsolutePath(const std::string& path);

// Makes the folder at `path`, and those above it, where it is not there; says whether it was not.
Result<bool> MakeFolder(const std::string& path);

// Makes a new folder for temporary files, called `name` and something that no other is called.
Result<std::string> MakeTemporaryFolder(std::string_view name);

// Refuses with kUsage to write what `command` makes into the folder that it makes it of.
Status CheckOtherFolder(std::string_view command, const std::string& input,
                        const std::string& output);

// Writes what was measured to where it is kept; a folder that cannot be written to is no reason to
// lose it, and is warned of.
void KeepResult(const std::string& path, const std::string& text, const RunContext& context);

// Writes a graph for simulators as it is.
Result<ChakraWriteReport> WriteChakraFile(const Trace& trace, const std::string& path);

// Beyond so many, writing a file for each rank takes hours.
inline constexpr int64_t kMostRankFiles = int64_t{1} << 18;

// Refuses with kUsage to write PREFIX.0.et … beside what an earlier job with more ranks, or with
// groups where this one has none, left under these names: simulators would take it for a part. Also
// beside a job in classes, which stands for the folder.
Status CheckNoOtherJob(const std::string& prefix, int64_t ranks, bool has_groups);
// Refuses with kUsage to write a job in classes where other traces are.
Status CheckNoTraces(const std::string& folder, const RunContext& context);
// Its parts: the first file BEFORE + rank + AFTER of a rank from `ranks` on, and the error.
std::optional<std::string> RankFileBeyond(const std::string& before, const std::string& after,
                                          int64_t ranks);
tl::unexpected<Error> OtherJob(const std::string& path, int64_t ranks);

// The name of the file of process groups that belongs to PREFIX.0.et ….
std::string GroupsFileName(const std::string& prefix);

// Writes the ranks of process groups by id, as ASTRA-sim reads them.
Status WriteGroupsFile(const std::map<int64_t, std::vector<int64_t>>& groups,
                       const std::string& path);

}  // namespace etude
