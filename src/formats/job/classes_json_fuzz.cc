#include <cstdint>

#include "src/formats/fuzz_support.h"
#include "src/formats/job/job_folder.h"

// classes.json of a job folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto job =
      etude::ParseClassesFile("fuzz", etude::fuzz::Bytes(data, size), etude::fuzz::SmallLimits());
  if (!job) return 0;
  (void)etude::CheckJob(*job);
  for (const int64_t rank : {0, 1, 7}) {
    (void)etude::TraceOfRank(*job, rank);
    for (const etude::Route& route : job->routes) {
      (void)route.ReceiverOf(job->mesh, rank, 0);
      (void)route.SenderTo(job->mesh, rank, 1);
    }
    for (const etude::GroupKind& kind : job->group_kinds) {
      const auto group = kind.GroupOf(job->mesh, rank % job->mesh.size());
      if (group) (void)kind.NameOf(*group);
    }
  }
  return 0;
}
