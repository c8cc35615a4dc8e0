#include "src/sim/machine/nccl_tests.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/base/text/words.h"

namespace etude {
namespace {

constexpr std::string_view kStart = "Collective test starting:";

// A program of nccl-tests.
struct TestProgram {
  std::string_view name;  // without "_perf"
  MeasuredKind kind;
  bool counts_all = false;  // the size is that of the data of all ranks
};

// Longer names first, for file names.
constexpr TestProgram kPrograms[] = {
    {"all_reduce", CollectiveType::kAllReduce},
    {"all_gather", CollectiveType::kAllGather, /*counts_all=*/true},
    {"reduce_scatter", CollectiveType::kReduceScatter},
    {"alltoall", CollectiveType::kAllToAll},
    {"broadcast", CollectiveType::kBroadcast},
    {"sendrecv", kMessageKind},
    {"scatter", CollectiveType::kScatter},
    {"gather", CollectiveType::kGather, /*counts_all=*/true},
    {"reduce", CollectiveType::kReduce},
};

std::string ProgramNames() {
  std::string names;
  for (const TestProgram& program : kPrograms) {
    names += fmt::format("{}{}_perf", names.empty() ? "" : ", ", program.name);
  }
  return names;
}

// Returns the printable begin of a name.
std::string NameIn(std::string_view text) {
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  std::string name(text.begin(), std::ranges::find_if_not(text, is_printable));
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

class NcclTestsReader {
 public:
  explicit NcclTestsReader(const std::string& path) : path_(path) {
    const std::string name = std::filesystem::path(path).filename().string();
    for (const TestProgram& program : kPrograms) {
      if (of_file_ == nullptr && name.find(program.name) != name.npos) of_file_ = &program;
    }
    program_ = of_file_;
  }

  Result<MachineFile> Run(std::string_view text) {
    for (number_ = 1; !text.empty(); ++number_) {
      const size_t end = std::min(text.find('\n'), text.size());
      ETUDE_RETURN_IF_ERROR(AddLine(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (times_.empty()) {
      return BadInput(path_ + ": found no sizes with times, expected the output of nccl-tests");
    }
    MachineFile file;
    file.machine.backend = "nccl";
    file.machine.device = "cuda";
    file.machine.gpu = gpu_;
    for (const auto& [key, times] : times_) {
      const auto& [kind, ranks, bytes] = key;
      const bool is_same = !file.series.empty() && file.series.back().kind == kind &&
                           file.series.back().ranks == ranks;
      if (!is_same) file.series.push_back({.kind = kind, .ranks = ranks});
      double sum = 0;
      for (const double time : times) sum += time;
      const double mean = sum / static_cast<double>(times.size());
      file.series.back().points.push_back(
          {.bytes = bytes, .time_ns = std::max<int64_t>(1, std::llround(mean))});
    }
    return file;
  }

 private:
  tl::unexpected<Error> Wrong(std::string_view what) const {
    return BadInput(fmt::format("{}:{}: {}", path_, number_, what));
  }

  Status AddLine(std::string_view line) {
    if (const size_t at = line.find(kStart); at != line.npos) {
      return Begin(WordsOf(line.substr(at + kStart.size())));
    }
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty()) return {};
    if (words[0].front() == '#') {
      AddComment(line, words);
      return {};
    }
    // Other programs may print between the lines of the table.
    if (!time_at_ || words.size() <= *time_at_ || !ParseWhole(words[0])) return {};
    return AddSize(words);
  }

  Status Begin(const std::vector<std::string_view>& words) {
    if (words.empty()) return Wrong("found no name of a test");
    const std::string_view name = words[0].substr(0, words[0].find("_perf"));
    const auto* const found = std::ranges::find(kPrograms, name, &TestProgram::name);
    if (found == std::end(kPrograms)) {
      return Wrong(
          fmt::format("found the test '{}', expected one of {}", words[0], ProgramNames()));
    }
    program_ = found;
    ranks_ = 0;
    time_at_.reset();
    return {};
  }

  void AddComment(std::string_view line, const std::vector<std::string_view>& words) {
    if (line.find("nThread") != line.npos) {
      ranks_ = 0;
      time_at_.reset();
    }
    const size_t first = words[0] == "#" ? 1 : 0;
    if (words.size() <= first + 1) return;
    if (words[first] == "Rank") {
      ++ranks_;
      const size_t at = line.find("NVIDIA");
      if (gpu_.empty() && at != line.npos) gpu_ = NameIn(line.substr(at));
    }
    const auto size = std::ranges::find(words, "size");
    const auto time = std::ranges::find(words, "time");
    if (size != words.end() && time != words.end() && size < time) {
      time_at_ = static_cast<size_t>(time - size);
    }
  }

  Status AddSize(const std::vector<std::string_view>& words) {
    if (program_ == nullptr) {
      return Wrong(
          fmt::format("found times of an unknown test, expected a line '{} all_reduce_perf' "
                      "or a file name with one of {}",
                      kStart, ProgramNames()));
    }
    if (ranks_ < 2) {
      return Wrong(fmt::format(
          "found times after {} lines '# Rank …', expected one for each of at least 2 ranks",
          ranks_));
    }
    const int64_t size = *ParseWhole(words[0]);
    const auto micros = ParseDecimal(words[*time_at_]);
    constexpr int64_t kMostTested = int64_t{1} << 50;
    constexpr double kMostMicros = 1e9;
    if (size < 0 || size > kMostTested) {
      return Wrong(fmt::format("found {} bytes, expected up to {}", size, kMostTested));
    }
    if (!micros || !(*micros >= 0) || *micros > kMostMicros) {
      return Wrong(fmt::format("found the time '{}' of {} bytes, expected microseconds",
                               words[*time_at_], words[0]));
    }
    const bool is_message = program_->kind == kMessageKind;
    if (is_message && message_ranks_ && *message_ranks_ != ranks_) {
      return Wrong(
          fmt::format("found messages among {} ranks after those among {}, expected one "
                      "number: their times are those of any two ranks",
                      ranks_, *message_ranks_));
    }
    if (is_message) message_ranks_ = ranks_;
    const int64_t ranks = is_message ? 2 : ranks_;
    const int64_t bytes = program_->counts_all ? size / ranks_ : size;
    times_[{program_->kind, ranks, bytes}].push_back(*micros * 1e3);
    return {};
  }

  using Key = std::tuple<MeasuredKind, int64_t, int64_t>;  // ranks, bytes

  const std::string& path_;
  int64_t number_ = 0;  // of the line
  const TestProgram* of_file_ = nullptr;
  const TestProgram* program_ = nullptr;
  int64_t ranks_ = 0;
  std::optional<int64_t> message_ranks_;
  std::optional<size_t> time_at_;  // column
  std::string gpu_;
  std::map<Key, std::vector<double>> times_;  // ns
};

}  // namespace

bool IsNcclTestsOutput(std::string_view text) {
  return text.find(kStart) != text.npos || text.find("# nThread") != text.npos ||
         (text.find("out-of-place") != text.npos && text.find("in-place") != text.npos);
}

Result<MachineFile> ParseNcclTests(std::string_view text, const std::string& path) {
  return NcclTestsReader(path).Run(text);
}

}  // namespace etude
