// Ranks of the job, one process each. Implemented in one_rank.cc for a single rank, otherwise in
// ranks.cc.
#pragma once

#include <string>
#include <vector>

namespace c10 {
struct Device;
struct IValue;
}  // namespace c10

struct Job {
  int rank = 0;
  int size = 1;
  int step = 0;  // step and data that this rank runs
  int data = 0;
};

std::string DataFile(int data);
std::string GapFile(int rank);

// Connects to the other ranks and makes the process groups, for communication of the memory of
// `device`. A device without a number gets the rank's number on its machine.
Job Join(const std::string& folder, c10::Device& device);
// Waits until all ranks have made the call equally often.
void Meet();
// Returns rank 0's value on all ranks.
bool Tell(bool own);
// Returns the values of all ranks, by rank, on rank 0; an empty list on others.
std::vector<double> Gather(double own);
void Leave();

// Set an argument of a communication.
void SetGroup(c10::IValue& argument, int number);
void SetGroupName(c10::IValue& argument, int number);
void SetReduction(c10::IValue& argument, const char* name);

// Run the communications in between as one batch, with `work` as the handle for all of it. `work`
// is unchanged if the group does not support batches.
void BeginGroupBatch(int number);
void EndGroupBatch(int number, c10::IValue& work);

// Waits for the work that an operator began, if any.
void WaitFor(const c10::IValue& work);
