#include "src/formats/capture_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/ascii.h"
#include "src/base/folder_names.h"
#include "src/base/quantity.h"
#include "src/formats/byte_source.h"
#include "src/formats/job_folder.h"
#include "src/formats/job_json.h"
#include "src/formats/read_trace.h"

namespace etude {
namespace {

constexpr std::string_view kNativeEnding = ".etude";

// The digits of `text` from `begin` on.
std::string_view DigitsAt(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return text.substr(begin, end - begin);
}

std::string_view WithoutCompression(std::string_view name) {
  for (const auto& [ending, compression] : kCompressionEndings) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

// `name` without the endings of traces and compressions.
std::string_view Stem(std::string_view name) {
  name = WithoutCompression(name);
  for (const std::string_view ending : {".json", ".etude", ".et", ".trace", ".pt"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

// Whether `text` ends in a part of a version, as "et_1.0" and "v2" do: a number that stands alone.
// "resnet50" and "llama7b" are names.
bool EndsInVersion(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  if (begin == text.size()) return false;
  const bool is_word = begin >= 1 && std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0;
  const bool is_v = begin >= 1 && text[begin - 1] == 'v';
  return !is_word || is_v;
}

bool LooksLikeTrace(std::string_view name) {
  name = WithoutCompression(name);
  if (name.starts_with(".")) return false;
  return name.ends_with(".json") || name.ends_with(".et") || name.ends_with(".etude");
}

// The rank in Kineto's distributedInfo, as real JSON or as Python's repr in a string, if it stands
// in the first bytes.
std::optional<int64_t> RankFromDistributedInfo(std::string_view beginning) {
  const size_t info = beginning.find("\"distributedInfo\"");
  if (info == std::string_view::npos) return std::nullopt;
  const std::string_view object = beginning.substr(info, beginning.find('}', info) - info);
  for (const std::string_view key : {"\"rank\":", "'rank':", "\\\"rank\\\":"}) {
    size_t at = object.find(key);
    if (at == std::string_view::npos) continue;
    at = object.find_first_not_of(" \t\n", at + key.size());
    if (at != std::string_view::npos) return ParseWhole(DigitsAt(object, at));
  }
  return std::nullopt;
}

struct Candidate {
  std::string path;
  std::string name;
  FileKind kind = FileKind::kUnknown;
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
    case FileKind::kPerfetto:  // mostly a timeline of the others
    case FileKind::kChakraFeeder:
    case FileKind::kOtherJson: return nullptr;
  }
  return nullptr;
}

// What by its name is a trace of a rank, and by its first bytes none; "" for all others.
std::string DamageOf(const Candidate& file, std::string_view beginning) {
  if (file.kind != FileKind::kUnknown) return "";
  std::string_view expected;
  if (file.name.ends_with(kNativeEnding)) expected = "a native capture";
  if (file.name.ends_with(".et")) expected = "a Chakra trace";
  if (expected.empty() && RankFromName(file.name)) expected = "a trace";
  if (expected.empty()) return "";
  return fmt::format("{}: found {} bytes, expected {}: it is damaged", file.path,
                     beginning.empty() ? "no" : "other", expected);
}

// Where a link in the folder leads, if that is outside of it; "" for all others.
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

// What a folder that was sent to somebody reads of that one's files is said.
void WarnOfOutside(const std::string& folder, const std::string& path, const RunContext& context) {
  const std::string target = OutsideOf(folder, path);
  if (target.empty()) return;
  context.Warn(fmt::format("{}: is a link out of the folder: what is read is {}", path, target));
}

// Of what is damaged the messages go to `damaged`.
Result<std::vector<Candidate>> FindTraces(const std::string& path, const RunContext& context,
                                          std::vector<DamagedFile>& damaged) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
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
    std::string damage = DamageOf(trace, beginning);
    if (!damage.empty()) damaged.push_back({.path = trace.path, .message = std::move(damage)});
    CaptureRank scratch;
    if (FileOfKind(scratch, trace.kind) == nullptr) continue;
    WarnOfOutside(path, trace.path, context);
    trace.rank = RankFromName(name);
    if (!trace.rank && trace.kind == FileKind::kKineto) {
      trace.rank = RankFromDistributedInfo(beginning);
    }
    traces.push_back(std::move(trace));
  }
  if (traces.empty() && !damaged.empty()) return BadInput(damaged.front().message);
  for (const DamagedFile& file : damaged) context.Warn(file.message);
  return traces;
}

// The first of the folders in a folder, by name; nullopt without one.
std::optional<std::string> FirstFolderIn(const std::string& path) {
  for (std::string& name : NamesIn(path).value_or(std::vector<std::string>())) {
    if (!name.starts_with('.') && IsFolder(path + "/" + name)) return std::move(name);
  }
  return std::nullopt;
}

// One process per folder needs no rank: then there is one trace of a kind at most.
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

std::optional<int64_t> RankFromName(const std::string& file_name) {
  const std::string_view stem = Stem(file_name);
  // "rank" or "worker" with a number right after it, anywhere.
  for (const std::string_view word : {"rank", "worker"}) {
    for (size_t at = stem.find(word); at != std::string_view::npos; at = stem.find(word, at + 1)) {
      size_t begin = at + word.size();
      if (begin < stem.size() && (stem[begin] == '-' || stem[begin] == '_' || stem[begin] == '.')) {
        ++begin;
      }
      const std::string_view digits = DigitsAt(stem, begin);
      if (!digits.empty()) return ParseWhole(digits);
    }
  }
  // A number at the end, after a dot or an underscore: host.3, chakra_host_trace_3. Versions
  // such as et_1.0.3 and longer numbers, dates and times, are no ranks; of a Chakra trace,
  // PREFIX.RANK.et to all tools, it is the rank.
  constexpr size_t kMostDigits = 6;
  size_t begin = stem.size();
  while (begin > 0 && IsDigit(stem[begin - 1])) --begin;
  if (begin == stem.size() || begin == 0) return std::nullopt;
  const char before = stem[begin - 1];
  if (before != '.' && before != '_') return std::nullopt;
  const bool is_chakra = WithoutCompression(file_name).ends_with(".et");
  const size_t significant = std::min(stem.find_first_not_of('0', begin), stem.size());
  if (!is_chakra && stem.size() - significant > kMostDigits) return std::nullopt;
  if (before == '.' && !is_chakra && EndsInVersion(stem.substr(0, begin - 1))) return std::nullopt;
  return ParseWhole(stem.substr(begin));
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
  ETUDE_ASSIGN_OR_RETURN(const std::vector<Candidate> traces,
                         FindTraces(folder.path, context, folder.damaged));
  if (traces.empty()) {
    const auto below = FirstFolderIn(folder.path);
    return BadInput(fmt::format(
        "{}: found no trace{}, expected files that end in .json, .et or .etude (also .gz, .zst) "
        "with "
        "traces in them, such as host.0.json",
        path,
        below ? fmt::format(" but folders, such as '{}', which are not looked into", *below) : ""));
  }
  const bool one_process = IsOneProcess(traces);
  std::map<std::optional<int64_t>, CaptureRank> ranks;
  std::optional<int64_t> only_rank;
  for (const Candidate& trace : traces) {
    if (trace.rank) only_rank = trace.rank;
  }
  for (const Candidate& trace : traces) {
    if (!one_process && !trace.rank) {
      return BadInput(trace.path +
                      ": one of several traces, and its rank cannot be told; expected "
                      "a name such as host.N.json or rank-N.json");
    }
    const std::optional<int64_t> number = one_process ? only_rank : trace.rank;
    CaptureRank& rank = ranks[number];
    rank.rank = number;
    std::string& place = *FileOfKind(rank, trace.kind);
    if (!place.empty()) {
      return BadInput(fmt::format("{}: found a second {} trace of rank {}, the first is {}",
                                  trace.path, Name(trace.kind), rank.number(), place));
    }
    place = trace.path;
  }
  for (auto& [number, rank] : ranks) folder.ranks.push_back(std::move(rank));

  const std::string job_path = folder.File(std::string(kJobFile));
  std::error_code error;
  if (std::filesystem::exists(job_path, error)) {
    WarnOfOutside(folder.path, job_path, context);
    ETUDE_ASSIGN_OR_RETURN(folder.job, ReadJobFile(job_path, context));
    const int64_t world = folder.job->world_size.value_or(0);
    const auto found = static_cast<int64_t>(folder.ranks.size());
    if (found < world) {
      context.Warn(fmt::format("{}: traces of {} rank{}, the job had {}", path, found,
                               found == 1 ? "" : "s", world));
    }
  }
  return folder;
}

}  // namespace etude
