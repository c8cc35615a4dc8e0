#include "src/formats/job/capture_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/folder_names.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/job/job_json.h"
#include "src/formats/profile/pid_of_rank.h"
#include "src/formats/read_trace.h"

namespace etude {
namespace {

constexpr std::string_view kNativeEnding = ".etude";

bool LooksLikeTrace(std::string_view name) {
  name = WithoutCompression(name);
  if (name.starts_with(".")) return false;
  return name.ends_with(".json") || name.ends_with(".et") || name.ends_with(".etude");
}

// Facts of the process in the first bytes of a Kineto trace.
struct StatedProcess {
  std::optional<int64_t> rank;
  bool of_several = false;  // a profile of several ranks: the stated rank is one of them
};

// Returns the rank in Kineto's distributedInfo, as real JSON or as Python's repr in a string, if it
// is in the first bytes.
std::optional<int64_t> RankFromDistributedInfo(std::string_view beginning) {
  const size_t info = beginning.find("\"distributedInfo\"");
  if (info == std::string_view::npos) return std::nullopt;
  const std::string_view object = beginning.substr(info, beginning.find('}', info) - info);
  for (const std::string_view key : {"\"rank\":", "'rank':", "\\\"rank\\\":"}) {
    size_t at = object.find(key);
    if (at == std::string_view::npos) continue;
    at = object.find_first_not_of(" \t\n", at + key.size());
    if (at == std::string_view::npos) continue;
    return ParseWhole(object.substr(at, object.find_first_not_of("0123456789", at) - at));
  }
  return std::nullopt;
}

// Returns true if a process id of the first events comes from a merge of several ranks' profiles.
bool HasPidOfRank(std::string_view beginning) {
  constexpr std::string_view kPid = "\"pid\"";
  for (size_t at = beginning.find(kPid); at != std::string_view::npos;
       at = beginning.find(kPid, at + 1)) {
    const size_t begin = beginning.find_first_not_of(" \t\n:", at + kPid.size());
    if (begin == std::string_view::npos) break;
    if (beginning[begin] != '"') continue;
    const std::string_view text = beginning.substr(begin + 1);
    if (ReadPidOfRank(text.substr(0, text.find('"')))) return true;
  }
  return false;
}

StatedProcess ProcessOf(FileKind kind, std::string_view beginning) {
  if (kind != FileKind::kKineto) return {};
  return {.rank = RankFromDistributedInfo(beginning), .of_several = HasPidOfRank(beginning)};
}

struct Candidate {
  std::string path;
  std::string name;
  FileKind kind = FileKind::kUnknown;
  RankName words;         // from its name
  StatedProcess process;  // from its content
  std::optional<int64_t> rank;
};

std::string* FileOfKind(CaptureRank& rank, FileKind kind) {
  switch (kind) {
    case FileKind::kPyTorchEt: return &rank.host;
    case FileKind::kKineto: return &rank.device;
    case FileKind::kLinked: return &rank.linked;
    case FileKind::kChakra: return &rank.chakra;
    case FileKind::kNative: return &rank.native;
    case FileKind::kUnknown:
    case FileKind::kPerfetto:  // usually a timeline of the others
    case FileKind::kChakraFeeder:
    case FileKind::kOtherJson: return nullptr;
  }
  return nullptr;
}

// Returns the error of a file with a rank trace's name but other contents; "" for all others.
std::string DamageOf(const Candidate& file, std::string_view beginning) {
  if (file.kind != FileKind::kUnknown) return "";
  std::string_view expected;
  if (file.name.ends_with(kNativeEnding)) expected = "a native capture";
  if (file.name.ends_with(".et")) expected = "a Chakra trace";
  if (expected.empty() && (file.words.rank || file.words.number)) expected = "a trace";
  if (expected.empty()) return "";
  return fmt::format("{}: {}, expected {}", file.path,
                     beginning.empty() ? "empty file" : "unknown content", expected);
}

// Returns the target of a link that leads outside of the folder; "" for all others.
std::string OutsideOf(const std::string& folder, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_symlink(path, error)) return "";
  const fs::path target = fs::canonical(path, error);
  if (error) return "";
  const fs::path inside = fs::canonical(folder, error);
  if (error) return "";
  const bool is_inside = std::ranges::mismatch(inside, target).in1 == inside.end();
  return is_inside ? "" : target.string();
}

// Warns that a folder, perhaps from somebody else, reads the user's files elsewhere.
void WarnOfOutside(const std::string& folder, const std::string& path, const RunContext& context) {
  const std::string target = OutsideOf(folder, path);
  if (target.empty()) return;
  context.Warn(fmt::format("{}: symbolic link out of the folder; reading {}", path, target));
}

// Finds traces; appends messages about damaged files to `damaged`.
Result<std::vector<Candidate>> FindTraces(const std::string& path, const RunContext& context,
                                          std::vector<DamagedFile>& damaged) {
  ETUDE_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(path));
  std::ranges::sort(names, ComesBefore);
  std::vector<Candidate> traces;
  for (const std::string& name : names) {
    Candidate trace{.path = path + "/" + name, .name = name};
    std::error_code ignored;
    if (name == kJobFile || !LooksLikeTrace(name) ||
        !std::filesystem::is_regular_file(trace.path, ignored)) {
      continue;
    }
    ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(trace.path, context.limits));
    ETUDE_ASSIGN_OR_RETURN(const std::string_view beginning, source.Peek(kDetectBytes));
    trace.kind = DetectFileKind(beginning);
    trace.words = ReadRankName(name);
    std::string damage = DamageOf(trace, beginning);
    if (!damage.empty()) damaged.push_back({.path = trace.path, .message = std::move(damage)});
    CaptureRank scratch;
    if (FileOfKind(scratch, trace.kind) == nullptr) continue;
    WarnOfOutside(path, trace.path, context);
    trace.process = ProcessOf(trace.kind, beginning);
    traces.push_back(std::move(trace));
  }
  if (traces.empty() && !damaged.empty()) return BadInput(damaged.front().message);
  for (const DamagedFile& file : damaged) context.Warn(file.message);
  return traces;
}

// Returns the first subfolder, by name; nullopt without one.
std::optional<std::string> FirstFolderIn(const std::string& path) {
  for (std::string& name : NamesIn(path).value_or(std::vector<std::string>())) {
    if (!name.starts_with('.') && IsFolder(path + "/" + name)) return std::move(name);
  }
  return std::nullopt;
}

// Returns true if the folder needs no ranks: it has at most one trace of a kind.
bool IsOneProcess(const std::vector<Candidate>& traces) {
  std::map<FileKind, int> counts;
  std::optional<int64_t> rank;
  for (const Candidate& trace : traces) {
    if (++counts[trace.kind] > 1) return false;
    if (trace.rank && rank && trace.rank != rank) return false;
    if (trace.rank) rank = trace.rank;
  }
  return true;
}

using Candidates = std::vector<Candidate*>;

// Returns true if two of them have the same rank.
template <typename RankOf>
bool HaveOneTwice(const Candidates& traces, RankOf rank_of) {
  std::set<int64_t> seen;
  return !std::ranges::all_of(traces, [&](const Candidate* trace) {
    const std::optional<int64_t> rank = rank_of(*trace);
    return !rank || seen.insert(*rank).second;
  });
}

// Returns true if ranks in the content differ from those in the names. Names may count per node:
// rank0 of two nodes are ranks 0 and 8 of the job.
bool ContentTellsMore(const Candidates& traces) {
  const auto of_name = [](const Candidate& trace) { return trace.words.rank; };
  const auto of_content = [](const Candidate& trace) { return trace.process.rank; };
  return HaveOneTwice(traces, of_name) && !HaveOneTwice(traces, of_content) &&
         std::ranges::all_of(
             traces, [&](const Candidate* trace) { return of_content(*trace).has_value(); });
}

// Finds the rank of each trace as far as possible.
void FindRanksOf(std::vector<Candidate>& traces) {
  std::map<FileKind, Candidates> by_kind;
  for (Candidate& trace : traces) by_kind[trace.kind].push_back(&trace);
  std::set<int64_t> known;
  for (const auto& [kind, of_kind] : by_kind) {
    const bool by_content = ContentTellsMore(of_kind);
    for (Candidate* trace : of_kind) {
      if (!by_content) trace->rank = trace->words.rank;
      if (!trace->rank && !trace->process.of_several) trace->rank = trace->process.rank;
      if (trace->rank) known.insert(*trace->rank);
    }
  }
  // Other numbers are ranks if they count from 0, or match the ranks of the folder's traces of
  // other kinds.
  for (const auto& [kind, of_kind] : by_kind) {
    const auto has_rank = [](const Candidate* trace) { return trace->rank.has_value(); };
    if (std::ranges::any_of(of_kind, has_rank)) continue;
    std::vector<RankName> names;
    for (const Candidate* trace : of_kind) names.push_back(trace->words);
    const auto ranks = RanksFromNames(names);
    for (size_t i = 0; i < of_kind.size(); ++i) {
      const auto number = of_kind[i]->words.number;
      of_kind[i]->rank = ranks[i];
      if (!ranks[i] && number && known.contains(*number)) of_kind[i]->rank = number;
    }
  }
}

// Selects, among the recordings of each rank in the folder, those of one run: the series with files
// of most ranks, then the earliest; if names have times, those closest to each other.
class OneRun {
 public:
  explicit OneRun(const std::vector<Candidate>& traces) {
    for (const Candidate& trace : traces) {
      if (!trace.rank) continue;
      by_rank_[{trace.kind, *trace.rank}].push_back(&trace);
      ranks_[{trace.kind, trace.words.series}].insert(*trace.rank);
    }
    for (auto& [place, files] : by_rank_) {
      std::ranges::stable_sort(files, std::ranges::greater(), [&](const Candidate* file) {
        return ranks_.at({file->kind, file->words.series}).size();
      });
      const std::string& series = files.front()->words.series;
      std::erase_if(files, [&](const Candidate* file) { return file->words.series != series; });
      std::optional<size_t>& fewest = fewest_[place.first];
      if (fewest && *fewest <= files.size()) continue;
      fewest = files.size();
      time_[place.first] = files.front()->words.time;
    }
  }

  const Candidate& Taken(const Candidate& trace) const {
    const std::vector<const Candidate*>& files = by_rank_.at({trace.kind, *trace.rank});
    const std::optional<int64_t> time = time_.at(trace.kind);
    const auto distance = [&](const Candidate* file) -> uint64_t {
      if (!time || !file->words.time) return 0;
      const auto [first, last] = std::minmax(*time, *file->words.time);
      return static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
    };
    return **std::ranges::min_element(files, {}, distance);
  }

 private:
  std::map<std::pair<FileKind, int64_t>, std::vector<const Candidate*>> by_rank_;
  std::map<std::pair<FileKind, std::string>, std::set<int64_t>> ranks_;  // by series
  // For the rank with the fewest recordings, by kind.
  std::map<FileKind, std::optional<size_t>> fewest_;
  std::map<FileKind, std::optional<int64_t>> time_;
};

// Returns "a.json", "a.json and b.json" or "a.json, b.json and 3 others".
std::string NamesText(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  if (names.size() == 2) return fmt::format("{} and {}", names[0], names[1]);
  const size_t others = names.size() - 2;
  return fmt::format("{}, {} and {} other{}", names[0], names[1], others, others == 1 ? "" : "s");
}

constexpr std::string_view kRankNames =
    "a name such as rank-3.json or host.3.json, or a rank in its distributedInfo";

void WarnOfUnplaced(const std::string& folder, const std::vector<std::string>& names,
                    const RunContext& context) {
  if (names.empty()) return;
  const bool one = names.size() == 1;
  context.Warn(fmt::format("{}: skipped {}: found no rank in {}, expected {}; to read {}", folder,
                           NamesText(names), one ? "its name or content" : "their names or content",
                           kRankNames, one ? "it, give its path" : "them, give their paths"));
}

struct SecondTrace {
  const Candidate* trace = nullptr;
  const Candidate* taken = nullptr;
};

void WarnOfSecond(const std::string& folder, const std::vector<SecondTrace>& seconds,
                  const RunContext& context) {
  if (seconds.empty()) return;
  const auto& [trace, taken] = seconds.front();
  if (seconds.size() == 1) {
    const bool is_copy = WithoutCompression(trace->name) == WithoutCompression(taken->name);
    const std::string what =
        is_copy ? "copy of it"
                : fmt::format("{} trace of rank {}", Name(trace->kind), *trace->rank);
    context.Warn(
        fmt::format("{}: used {} and skipped {}, a second {}; to read the second one, give its "
                    "path or move the first out of the folder",
                    folder, taken->name, trace->name, what));
    return;
  }
  std::vector<std::string> names;
  for (const SecondTrace& second : seconds) names.push_back(second.trace->name);
  context.Warn(
      fmt::format("{}: skipped {}, second traces of their ranks (for rank {} it used {}); to read "
                  "them, give their paths or move the first ones out of the folder",
                  folder, NamesText(names), *trace->rank, taken->name));
}

// Returns the error for several traces without any known rank.
tl::unexpected<Error> NoRanks(const std::string& folder, const std::vector<Candidate>& traces) {
  std::vector<std::string> names;
  for (const Candidate& trace : traces) names.push_back(trace.name);
  const bool has_number = std::ranges::any_of(
      names, [](const std::string& name) { return std::ranges::any_of(name, IsDigit); });
  return BadInput(fmt::format(
      "{}: found {} traces ({}) without ranks{}, expected a job: files with {}; to read traces of "
      "one process give their paths, such as {}/{}",
      folder, traces.size(), NamesText(names),
      has_number ? " (numbers that count steps or do not start at 0 are not ranks)" : "",
      kRankNames, folder, names.front()));
}

}  // namespace

std::vector<std::string> CaptureRank::files() const {
  std::vector<std::string> all;
  for (const std::string* file : {&host, &device, &native, &linked, &chakra}) {
    if (!file->empty()) all.push_back(*file);
  }
  return all;
}

const JobRank* CaptureFolder::job_rank(const CaptureRank& rank) const {
  if (!job) return nullptr;
  const auto it = job->ranks.find(rank.number());
  return it == job->ranks.end() ? nullptr : &it->second;
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

tl::unexpected<Error> NoFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error))
    return BadInput(path + ": found a file, expected a capture folder");
  if (!error) error = std::make_error_code(std::errc::no_such_file_or_directory);
  return MakeError(ErrorCode::kIo, fmt::format("{}: cannot open: {}", path, error.message()));
}

Result<CaptureFolder> ListCaptureFolder(const std::string& path, const RunContext& context) {
  CaptureFolder folder{.path = path, .ranks = {}, .job = std::nullopt};
  while (folder.path.size() > 1 && folder.path.ends_with('/')) folder.path.pop_back();
  if (IsJobFolder(folder.path)) {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> ranks,
                           RanksOfJobFolder(folder.path, context));
    for (const int64_t rank : ranks) {
      CaptureRank& entry = folder.ranks.emplace_back();
      entry.rank = rank;
      entry.chakra = folder.File(RankFileName(rank));
    }
    return folder;
  }
  ETUDE_ASSIGN_OR_RETURN(std::vector<Candidate> traces,
                         FindTraces(folder.path, context, folder.damaged));
  if (traces.empty()) {
    const auto below = FirstFolderIn(folder.path);
    return BadInput(fmt::format(
        "{}: found no trace{}, expected trace files that end in .json, .et or .etude (also .gz, "
        ".zst), such as host.0.json",
        path,
        below ? fmt::format(" but subfolders such as '{}', which are not searched", *below) : ""));
  }
  FindRanksOf(traces);
  const bool one_process = IsOneProcess(traces);
  if (one_process) {
    std::optional<int64_t> only_rank;
    for (const Candidate& trace : traces) only_rank = trace.rank ? trace.rank : only_rank;
    for (Candidate& trace : traces) trace.rank = only_rank;
  } else if (std::ranges::none_of(traces,
                                  [](const Candidate& trace) { return trace.rank.has_value(); })) {
    return NoRanks(path, traces);
  }
  const OneRun run(traces);
  std::map<std::optional<int64_t>, CaptureRank> ranks;
  std::vector<std::string> unplaced;
  std::vector<SecondTrace> seconds;
  for (const Candidate& trace : traces) {
    const Candidate* taken = &trace;
    if (!one_process && !trace.rank) unplaced.push_back(trace.name);
    if (!one_process && trace.rank) taken = &run.Taken(trace);
    if (taken != &trace) seconds.push_back({&trace, taken});
    if (taken != &trace || (!one_process && !trace.rank)) {
      folder.left_out.push_back(trace.path);
      continue;
    }
    CaptureRank& rank = ranks[trace.rank];
    rank.rank = trace.rank;
    *FileOfKind(rank, trace.kind) = trace.path;
  }
  WarnOfUnplaced(folder.path, unplaced, context);
  WarnOfSecond(folder.path, seconds, context);
  for (auto& [number, rank] : ranks) folder.ranks.push_back(std::move(rank));

  const std::string job_path = folder.File(std::string(kJobFile));
  std::error_code error;
  if (std::filesystem::exists(job_path, error)) {
    WarnOfOutside(folder.path, job_path, context);
    ETUDE_ASSIGN_OR_RETURN(folder.job, ReadJobFile(job_path, context));
    const int64_t world = folder.job->world_size.value_or(0);
    const auto found = static_cast<int64_t>(folder.ranks.size());
    if (found < world) {
      context.Warn(fmt::format("{}: found traces of {} rank{}, expected {} as in job.json", path,
                               found, found == 1 ? "" : "s", world));
    }
  }
  return folder;
}

}  // namespace etude
