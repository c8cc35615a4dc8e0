#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <protozero/data_view.hpp>

#include "src/base/text/string_pool.h"
#include "src/formats/perfetto/perfetto_sequence.h"

namespace etude::perfetto {

// Makes members of a JSON object of the debug annotations of events.
class Arguments {
 public:
  // `most_depth`: of annotations inside each other.
  Arguments(StringPool& strings, size_t most_depth) : strings_(strings), most_depth_(most_depth) {}

  // Appends `"name": value` of a DebugAnnotation to `members`. False if it is nested too deep.
  // Throws protozero::exception for bytes that are none.
  bool Add(protozero::data_view annotation, const Sequence& sequence, std::string& members);

  // The text of a number. A number without one is kept as such: packets were lost.
  StringId Text(const Sequence::Texts& texts, uint64_t id);
  uint64_t lost_texts() const { return lost_texts_; }

 private:
  // An annotation as JSON.
  struct Argument {
    std::string name;
    std::string value = "null";
  };

  bool Read(protozero::data_view view, const Sequence& sequence, size_t depth, Argument& argument);

  StringPool& strings_;
  size_t most_depth_;
  uint64_t lost_texts_ = 0;
};

}  // namespace etude::perfetto
