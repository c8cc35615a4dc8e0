#include "src/base/machine/core_use.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/machine/process_usage.h"

namespace etude {
namespace {

std::string TextOfFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Splits a line into words at single or multiple blanks.
std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::optional<int64_t> CountOf(std::string_view word) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (error != std::errc() || end != word.data() + word.size() || count < 0) return std::nullopt;
  return count;
}

}  // namespace

double CoreLimit() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  const auto cores = static_cast<double>(CPU_COUNT(&usable));
  const std::optional<double> quota = QuotaCores(TextOfFile("/sys/fs/cgroup/cpu.max"));
  return quota ? std::min(cores, *quota) : cores;
}

std::optional<CoreUse> CoreUse::Now() {
  cpu_set_t usable;
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  if (ticks_per_second <= 0 || sched_getaffinity(0, sizeof usable, &usable) != 0) {
    return std::nullopt;
  }
  const auto ticks = BusyTicks(TextOfFile("/proc/stat"), [&](int64_t core) {
    return core < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(core), &usable);
  });
  if (!ticks) return std::nullopt;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return CoreUse{.at = Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()},
                 .busy = Nanos{*ticks * (1'000'000'000 / ticks_per_second)},
                 .own = CpuTimeWithChildren()};
}

double CoresOfOthers(const CoreUse& before, const CoreUse& after) {
  const int64_t passed = after.at.count - before.at.count;
  const int64_t busy = after.busy.count - before.busy.count;
  const int64_t own = after.own.count - before.own.count;
  if (passed <= 0 || busy <= own) return 0;
  return static_cast<double>(busy - own) / static_cast<double>(passed);
}

std::optional<int64_t> BusyTicks(std::string_view text,
                                 const std::function<bool(int64_t core)>& counts) {
  // "cpu3 user nice system idle iowait irq softirq steal guest guest_nice"; user time includes
  // guest time.
  constexpr size_t kIdle = 4;
  constexpr size_t kIoWait = 5;
  constexpr size_t kSteal = 8;
  std::optional<int64_t> busy;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::vector<std::string_view> words = WordsOf(line);
    constexpr std::string_view kCore = "cpu";
    if (words.size() <= kIdle || !words[0].starts_with(kCore)) continue;
    const auto core = CountOf(words[0].substr(kCore.size()));
    if (!core || !counts(*core)) continue;
    for (size_t i = 1; i < words.size() && i <= kSteal; ++i) {
      if (i == kIdle || i == kIoWait) continue;
      busy = busy.value_or(0) + CountOf(words[i]).value_or(0);
    }
  }
  return busy;
}

std::optional<double> QuotaCores(std::string_view text) {
  const std::vector<std::string_view> words = WordsOf(text.substr(0, text.find('\n')));
  if (words.size() != 2) return std::nullopt;
  const auto quota = CountOf(words[0]);
  const auto period = CountOf(words[1]);
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace etude
