#pragma once

#include "src/transform/runnable/runnable_job.h"

namespace etude {

// Finds the other sides of all communications that the plans of `job` let run: the k-th collectives
// of the ranks of a group, and the k-th send and receive between two ranks with a tag. All sides
// get one size. Communications without another side are replayed or left out. Adds messages about
// disagreements.
void MatchCommunications(RunnableJob& job);

}  // namespace etude
