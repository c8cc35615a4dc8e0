#include "src/cli/generate.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/each_rank.h"
#include "src/base/nearest.h"
#include "src/base/quantity.h"
#include "src/formats/atomic_file.h"
#include "src/formats/chakra_writer.h"
#include "src/report/format.h"
#include "src/synth/microbench.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

struct Written {
  std::string path;
  uint64_t nodes = 0;
  uint64_t bytes = 0;
};

class GenerateCommand : public Command {
 public:
  std::string_view name() const override { return "generate"; }
  std::string_view summary() const override {
    return "make Chakra traces of a pattern: microbenchmarks of any number of ranks";
  }

  void Declare(Options& options) override {
    options.Positional("what", &what_, "microbench");
    options.Positional("pattern", &pattern_, "what the ranks do; see below");
    options.Value("-o,--output", &output_, "PREFIX", "writes PREFIX.RANK.et for each rank");
    options.Required("--output");
    options.Value("--ranks", &bench_.ranks, "N", "ranks of the job", {.least = 1, .most = 1 << 20});
    options.Value("--size", &size_, "BYTES", "that a rank puts in, sends or moves: 64MiB");
    options.Value("--count", &bench_.count, "N", "repetitions, one after the other",
                  {.least = 1, .most = 100'000'000});
    options.Value("--duration", &duration_, "TIME", "of each computation: 100us");
    options.Value("--group-size", &bench_.group_size, "N",
                  "collectives in groups of N neighbours (default: all ranks)", {.least = 0});
    options.Flag("--native", &bench_.native,
                 "one node for collectives that ASTRA-sim refuses, instead of sends and receives");
    options.Flag("--json", &json_, "print what was written as JSON");
    std::string footer = "Patterns:\n";
    for (const PatternInfo& info : Patterns()) {
      footer += fmt::format("  {:<15} {}\n", info.name, info.help);
    }
    options.Footer(footer);
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(TakeOptions());
    const std::filesystem::path folder = std::filesystem::path(output_).parent_path();
    std::error_code error;
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error) return MakeError(ErrorCode::kIo, folder.string() + ": " + error.message());
    ETUDE_ASSIGN_OR_RETURN(
        const std::vector<Written> files,
        ForEachRank<Written>(
            static_cast<size_t>(bench_.ranks), 0, console.context(),
            [&](size_t i, const RunContext&) { return WriteRank(static_cast<int64_t>(i)); }));
    const auto groups = MicrobenchGroups(bench_);
    std::string groups_path;
    if (!groups.empty()) {
      groups_path = output_ + ".comm_groups.json";
      Json json = Json::object();
      for (const auto& [id, ranks] : groups) json[std::to_string(id)] = ranks;
      ETUDE_RETURN_IF_ERROR(WriteFile(groups_path, json.dump() + "\n"));
    }
    Report(console, files, groups_path);
    return ExitCode::kOk;
  }

 private:
  Status TakeOptions() {
    if (what_ != "microbench") {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("generate: found '{}', expected microbench", what_));
    }
    std::vector<std::string> names;
    bool known = false;
    for (const PatternInfo& info : Patterns()) {
      names.emplace_back(info.name);
      if (info.name != pattern_) continue;
      bench_.pattern = info.pattern;
      known = true;
    }
    if (!known) {
      const std::string near = Nearest(pattern_, names);
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("generate: unknown pattern '{}'; {}", pattern_,
                      near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                   : fmt::format("did you mean '{}'?", near)));
    }
    const auto size = ParseBytes(size_);
    if (!size) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--size: found '{}', expected bytes, as in 64MiB", size_));
    }
    const auto duration = ParseTime(duration_);
    if (!duration) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--duration: found '{}', expected a time, as in 100us", duration_));
    }
    bench_.size = *size;
    bench_.duration = *duration;
    return CheckMicrobench(bench_);
  }

  Result<Written> WriteRank(int64_t rank) const {
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, MakeMicrobench(bench_, rank));
    const std::string path = fmt::format("{}.{}.et", output_, rank);
    ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
    const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
    ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report, WriteChakra(trace, {}, sink));
    ETUDE_RETURN_IF_ERROR(file.Commit());
    return Written{.path = path, .nodes = report.nodes, .bytes = report.bytes};
  }

  void Report(const Console& console, const std::vector<Written>& files,
              const std::string& groups) const {
    uint64_t nodes = 0;
    uint64_t bytes = 0;
    for (const Written& file : files) {
      nodes += file.nodes;
      bytes += file.bytes;
    }
    if (json_) {
      Json json = {{"format", "etude-generate"},
                   {"version", 1},
                   {"pattern", pattern_},
                   {"prefix", output_},
                   {"groups", groups.empty() ? Json(nullptr) : Json(groups)},
                   {"ranks", files.size()},
                   {"nodes", nodes},
                   {"bytes", bytes}};
      console.Print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
      return;
    }
    std::string text = fmt::format("wrote {}", files.front().path);
    if (files.size() > 1) text += fmt::format(" … {}", files.back().path);
    text += fmt::format(": {} nodes, {}\n", FormatCount(nodes),
                        FormatBytes(Bytes{static_cast<int64_t>(bytes)}));
    text += "  --workload-configuration=" + output_;
    if (!groups.empty()) text += " --comm-group-configuration=" + groups;
    console.Print(text + "\n");
  }

  std::string what_;
  std::string pattern_;
  std::string output_;
  std::string size_ = "1MiB";
  std::string duration_ = "100us";
  MicrobenchOptions bench_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace etude
