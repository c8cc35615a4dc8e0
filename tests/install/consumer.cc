#include <cstdio>
#include <exception>

#include <etude/feeder.h>
#include <etude/job.h>
#include <etude/simulate.h>
#include <etude/trace.h>
#include <etude/transform.h>

// Runs a Chakra trace as a simulator does; how many nodes it has.
static size_t RunChakra(const char* path) {
  Chakra::ETFeeder feeder(path);
  size_t count = 0;
  while (feeder.hasNodesToIssue()) {
    const auto node = feeder.getNextIssuableNode();
    if (node->type() == ChakraProtoMsg::COMP_NODE) ++count;
    feeder.freeChildrenNodes(node->id());
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const etude::Result<etude::Trace> trace = etude::ReadTrace(argv[1], {}, {});
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 3;
  }
  try {
    std::printf("%zu nodes, %zu Chakra nodes\n", trace->node_count(), RunChakra(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
