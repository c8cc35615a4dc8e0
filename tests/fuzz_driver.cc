// Runs a fuzz target without libFuzzer: over every file of its corpus, and over mutations of each
// that depend on nothing but the file and a counter.
//
//   x_fuzz CORPUS_FOLDER_OR_FILE... [--mutations=N] [--only=N]
//
// --only=N runs mutation N of each file alone, to reproduce what a crash reported.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr uint64_t kMutations = 1000;
// Large files get fewer mutations: about this many bytes in all per file.
constexpr uint64_t kBytesPerFile = uint64_t{32} << 20;

char g_current[512];  // what a crash report says

void ReportCrash(int signal_number) {
  const size_t length = std::char_traits<char>::length(g_current);
  if (write(STDERR_FILENO, g_current, length) < 0) _exit(1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Bytes that mean something to the formats we read.
constexpr std::string_view kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        "\"",
                                        "\\",
                                        ",",
                                        ":",
                                        "null",
                                        "-1",
                                        "1e999",
                                        "NaN",
                                        "18446744073709551616",
                                        "\\ud800",
                                        "\x80",
                                        std::string_view("\0", 1),
                                        "[[[[[[[[",
                                        "]]]]]]]]",
                                        "\xff\xff\xff\xff\xff",
                                        "<None>",
                                        "GenericList[",
                                        "Tensor(float)",
                                        "\x1f\x8b\x08",
                                        "\x28\xb5\x2f\xfd"};

std::string Mutate(std::string bytes, const std::string& other, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t bound) { return bound == 0 ? 0 : random() % bound; };
  const uint64_t changes = 1 + below(4);
  for (uint64_t i = 0; i < changes; ++i) {
    const size_t at = below(bytes.size() + 1);
    switch (below(8)) {
      case 0: bytes.resize(at); break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 2:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 3: bytes.erase(at, below(64)); break;
      case 4: bytes.insert(at, kTokens[below(std::size(kTokens))]); break;
      case 5: bytes.insert(at, bytes.substr(below(bytes.size() + 1), below(256))); break;
      case 6: bytes.insert(at, other.substr(below(other.size() + 1), below(256))); break;
      case 7: {
        const std::string_view token = kTokens[below(std::size(kTokens))];
        bytes.replace(at, std::min(token.size(), bytes.size() - at), token);
        break;
      }
    }
  }
  return bytes;
}

void RunOne(const std::string& name, std::optional<uint64_t> mutation, const std::string& bytes) {
  std::snprintf(g_current, sizeof(g_current), "\nfuzz: crashed in %s, %s %llu\n", name.c_str(),
                mutation ? "mutation" : "unchanged;",
                static_cast<unsigned long long>(mutation.value_or(0)));
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::optional<uint64_t> NumberAfter(std::string_view argument, std::string_view option) {
  if (!argument.starts_with(option)) return std::nullopt;
  argument.remove_prefix(option.size());
  uint64_t number = 0;
  std::from_chars(argument.data(), argument.data() + argument.size(), number);
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  uint64_t mutations = kMutations;
  std::optional<uint64_t> only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (const auto number = NumberAfter(argument, "--mutations=")) {
      mutations = *number;
    } else if (const auto one = NumberAfter(argument, "--only=")) {
      only = one;
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
      }
    } else if (std::filesystem::is_regular_file(argument)) {
      paths.emplace_back(argument);
    } else {
      std::fprintf(stderr, "fuzz: no corpus %s\n", argv[i]);
      return 1;
    }
  }
  std::ranges::sort(paths);
  if (paths.empty()) {
    std::fprintf(stderr, "fuzz: no corpus\n");
    return 1;
  }
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    signal(signal_number, ReportCrash);
  }
  uint64_t runs = 0;
  std::string other;
  for (const auto& path : paths) {
    const std::string bytes = ReadFile(path);
    const uint64_t bound = std::min(mutations, kBytesPerFile / (bytes.size() + 1) + 1);
    if (!only) RunOne(path.string(), std::nullopt, bytes);
    for (uint64_t i = only.value_or(0); i < (only ? *only + 1 : bound); ++i) {
      RunOne(path.string(), i, Mutate(bytes, other, i));
      ++runs;
    }
    other = bytes;
  }
  std::printf("fuzz: %zu files, %llu mutations\n", paths.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}
