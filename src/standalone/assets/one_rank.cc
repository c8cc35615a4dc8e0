#include "benchmark.h"
#include "ranks.h"

std::string DataFile(int) { return "step.data"; }
std::string GapFile(int) { return "gaps.data"; }

Job Join(const std::string&, c10::Device&) { return {}; }
void Meet() {}
bool Tell(bool own) { return own; }
std::vector<double> Gather(double own) { return {own}; }
void Leave() {}

void SetGroup(c10::IValue&, int) { Fail("no process group in a benchmark of one rank"); }
void SetGroupName(c10::IValue&, int) { Fail("no process group in a benchmark of one rank"); }
void SetReduction(c10::IValue&, const char*) { Fail("no reduction in a benchmark of one rank"); }

void BeginGroupBatch(int) { Fail("no process group in a benchmark of one rank"); }
void EndGroupBatch(int, c10::IValue&) { Fail("no process group in a benchmark of one rank"); }

void WaitFor(const c10::IValue&) {}
