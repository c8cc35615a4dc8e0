// The ranks of the job, one process each: one_rank.cc of a benchmark of one rank, else ranks.cc.
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
  int step = 0;  // which of the steps this rank runs, and on which data
  int data = 0;
};

std::string DataFile(int data);
std::string GapFile(int rank);

// Finds the other ranks and makes the process groups, for communications of this device's memory;
// of one without a number it takes that of the rank on its machine.
Job Join(const std::string& folder, c10::Device& device);
// Returns when all ranks have called it as often.
void Meet();
// What rank 0 says, on all ranks.
bool Tell(bool own);
// What all ranks say, by rank, on rank 0; nothing on others.
std::vector<double> Gather(double own);
void Leave();

// Set an argument of a communication.
void SetGroup(c10::IValue& argument, int number);
void SetGroupName(c10::IValue& argument, int number);
void SetReduction(c10::IValue& argument, const char* name);

// What is begun in between is given to the group as one, and all of it is waited for by `work`,
// which stays as it is where the group takes no batches.
void BeginGroupBatch(int number);
void EndGroupBatch(int number, c10::IValue& work);

// Waits for what an operator began; not for nothing.
void WaitFor(const c10::IValue& work);
