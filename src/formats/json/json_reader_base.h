#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/formats/json/json_elements.h"
#include "src/formats/trace_reader.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Shared base of JSON trace readers: from chunks to elements, with messages on unreadable elements,
// truncated documents and bytes after the end.
class JsonReaderBase : public TraceReader {
 public:
  Status Push(std::string_view chunk) final;
  Result<Trace> Finish(bool cut) final;

 protected:
  JsonReaderBase(JsonElements::Options elements, std::string_view element_word,
                 const ReadOptions& options, const RunContext& context);

  // Reads one element, already iterated by simdjson. An error of simdjson makes it malformed; an
  // error in the Status ends the reading.
  virtual simdjson::error_code ReadElement(const JsonItem& item,
                                           simdjson::ondemand::object object) = 0;
  // Handles a top-level member other than the array.
  virtual void ReadMember(std::string_view key, std::string_view text) = 0;
  // Called once after the last element, if the document is of the expected kind so far.
  virtual Status BeforeFinish() = 0;

  // Sets a better description of a malformed element than `error`, which is returned.
  simdjson::error_code Problem(std::string_view problem, simdjson::error_code error) {
    problem_ = problem;
    return error;
  }
  // Returns the text of the value that begins at `begin` in the element's text; nullopt if it is
  // not JSON.
  std::optional<std::string_view> RawText(const char* begin);
  // Stores a top-level member's text as an extra of the trace.
  void KeepMember(std::string_view key, std::string_view text);
  // Returns the unescaped text of a JSON string; nullopt if it is not a string.
  std::optional<std::string> Unescaped(std::string_view text);

  TraceBuilder& builder() { return builder_; }
  const std::string& name() const { return name_; }
  const RunContext& context() const { return context_; }
  bool saw_array() const { return saw_array_; }
  // Returns the end of the current element.
  const char* element_end() const { return element_end_; }

 private:
  Status Drain();
  Status TakeElement(const JsonItem& item);
  void SayRepairs();
  Status Malformed(const JsonItem& item, std::string_view what);
  Status CheckEnd(bool cut);

  std::string name_;
  std::string_view element_word_;  // "node", "event"
  ReadOptions options_;
  const RunContext& context_;
  JsonElements elements_;
  TraceBuilder builder_;
  simdjson::ondemand::parser parser_;
  uint64_t element_count_ = 0;
  const char* element_end_ = nullptr;
  bool saw_array_ = false;
  std::string problem_;
  std::string first_malformed_;
};

}  // namespace etude
