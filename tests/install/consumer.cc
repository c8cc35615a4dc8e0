#include <cstdio>

#include "src/formats/read_trace.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const etude::Result<etude::Trace> trace = etude::ReadTrace(argv[1], {}, {});
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 3;
  }
  std::printf("%zu nodes\n", trace->node_count());
  return 0;
}
