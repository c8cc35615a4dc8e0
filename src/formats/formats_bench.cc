// Compares each reader with reading (and decompressing) the file alone.
//
//   formats_bench [FILE...]     default: the large traces in $ETUDE_SHARED_DATA

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/read_trace.h"

namespace {

using etude::ByteSource;
constexpr int kRounds = 7;

constexpr const char* kDefaultFiles[] = {
    "gpu/hf_gpt2_et_1.1.0.json.gz",     "gpu/resnet_1gpu_et_1.0.3.json.gz",
    "cpu/transformer_et.json.gz",       "gpu/linear_kineto.json.gz",
    "chakra/gpt2_syn/device.0.json.gz", "chakra/gpt2_syn/linked.0.json.zst",
    "chakra/gpt2_syn/chakra.0.et.zst",
};

// Returns the CPU time of this thread in seconds, which other programs hardly affect.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Returns the median time of `fn` over the rounds, in seconds.
template <typename Fn>
double Median(Fn fn) {
  std::vector<double> seconds;
  for (int i = 0; i < kRounds; ++i) {
    const double begin = CpuSeconds();
    fn();
    seconds.push_back(CpuSeconds() - begin);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRounds / 2);
  return seconds[kRounds / 2];
}

uint64_t ReadBytes(const std::string& path) {
  auto source = ByteSource::Open(path, {});
  if (!source) return 0;
  while (true) {
    const auto chunk = source->Next();
    if (!chunk || chunk->empty()) return source->bytes_out();
  }
}

// Copies the uncompressed bytes of `path` to `to`.
bool Uncompress(const std::string& path, const std::string& to) {
  auto source = ByteSource::Open(path, {});
  auto file = etude::AtomicFile::Create(to);
  if (!source || !file) return false;
  while (true) {
    const auto chunk = source->Next();
    if (!chunk) return false;
    if (chunk->empty()) return file->Commit().has_value();
    if (!file->Write(*chunk)) return false;
  }
}

bool Measure(const std::string& path, const std::string& label) {
  const auto trace = etude::ReadTrace(path, {}, {});
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return false;
  }
  const uint64_t bytes = ReadBytes(path);
  const double read = Median([&] { ReadBytes(path); });
  const double parse = Median([&] { (void)etude::ReadTrace(path, {}, {}); });
  const auto rate = [bytes](double seconds) { return static_cast<double>(bytes) / 1e6 / seconds; };
  std::printf("%-42s %-11s %7.1f %8zu %9.0f %9.0f %8.0f\n", label.c_str(),
              std::string(Name(trace->info().format)).c_str(), static_cast<double>(bytes) / 1e6,
              trace->node_count(), rate(read), rate(parse),
              static_cast<double>(trace->memory_bytes()) /
                  static_cast<double>(std::max<size_t>(trace->node_count(), 1)));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (const char* data = std::getenv("ETUDE_SHARED_DATA"); paths.empty() && data != nullptr) {
    for (const char* file : kDefaultFiles) paths.push_back(std::string(data) + "/" + file);
  }
  if (paths.empty()) {
    std::fprintf(stderr, "formats_bench: name files, or set ETUDE_SHARED_DATA\n");
    return 2;
  }
  std::printf("MB are 10^6 uncompressed bytes; CPU time of one thread; medians of %d rounds\n",
              kRounds);
  std::printf("%-42s %-11s %7s %8s %9s %9s %8s\n", "file", "format", "MB", "nodes", "raw MB/s",
              "read MB/s", "B/node");
  const auto plain =
      (std::filesystem::temp_directory_path() / "etude_formats_bench.trace").string();
  bool good = true;
  for (const std::string& path : paths) {
    const std::string name = std::filesystem::path(path).filename().string();
    good = Measure(path, name) && good;
    if (name.ends_with(".gz") || name.ends_with(".zst")) {
      good = Uncompress(path, plain) && Measure(plain, "  the same, uncompressed") && good;
    }
  }
  std::error_code ignored;
  std::filesystem::remove(plain, ignored);
  return good ? 0 : 1;
}
