#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/report/page/page.h"
#include "src/report/text/table.h"

namespace etude {

// A simulated step for a page.
struct SimPageInput {
  std::string job;
  std::string machine;  // a line for each property, as `etude simulate` prints it
  std::string model;
  int64_t step = 0;  // ns
  int64_t ranks = 0;
  std::vector<Table> tables;  // of a SimulatedStep
  std::vector<std::string> notes;
};

// Makes the page of `etude simulate --report`: a section for each group of tables, with charts.
Page SimPage(const SimPageInput& input);

}  // namespace etude
