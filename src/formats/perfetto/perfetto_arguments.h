#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <protozero/data_view.hpp>

#include "src/base/text/string_pool.h"
#include "src/formats/perfetto/perfetto_sequence.h"

namespace etude::perfetto {

// Turns debug annotations of events into members of a JSON object.
class Arguments {
 public:
  // `most_depth`: maximum nesting of annotations.
  Arguments(StringPool& strings, size_t most_depth) : strings_(strings), most_depth_(most_depth) {}

  // Appends `"name": value` of a DebugAnnotation to `members`. Returns false if it is nested too
  // deeply. Throws protozero::exception for malformed bytes.
  bool Add(protozero::data_view annotation, const Sequence& sequence, std::string& members);

  // Returns the text with a number. A number without a text is returned as such, because packets
  // were lost.
  StringId Text(const Sequence::Texts& texts, uint64_t id);
  uint64_t lost_texts() const { return lost_texts_; }

 private:
  // One annotation as JSON.
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
