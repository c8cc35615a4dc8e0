#include "src/formats/json/json_reader_base.h"

#include <algorithm>
#include <utility>

#include "src/base/text/format_count.h"
#include "src/formats/json/json_text.h"

namespace etude {

JsonReaderBase::JsonReaderBase(JsonElements::Options elements, std::string_view element_word,
                               const ReadOptions& options, const RunContext& context)
    : name_(elements.name),
      element_word_(element_word),
      options_(options),
      context_(context),
      elements_([&] {
        elements.strict = options.strict;
        return std::move(elements);
      }()),
      builder_(context.limits) {}

Status JsonReaderBase::Push(std::string_view chunk) {
  elements_.Push(chunk);
  return Drain();
}

Status JsonReaderBase::Drain() {
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const JsonItem item, elements_.Next());
    switch (item.kind) {
      case JsonItem::Kind::kNone: return {};
      case JsonItem::Kind::kElement: ETUDE_RETURN_IF_ERROR(TakeElement(item)); break;
      case JsonItem::Kind::kMember: ReadMember(item.key, item.text); break;
      case JsonItem::Kind::kArray: saw_array_ = true; break;
    }
  }
}

Status JsonReaderBase::TakeElement(const JsonItem& item) {
  ++element_count_;
  if (builder_.node_count() >= context_.limits.nodes) {
    return BadInput(
        elements_.Message(item.offset, "more than " + std::to_string(context_.limits.nodes) + " " +
                                           std::string(element_word_) + "s (limit 'nodes')"));
  }
  if (item.text.front() != '{') {
    return Malformed(item, "found a value that is not an object");
  }
  // Simdjson allocates exactly the requested capacity: request it in steps.
  if (item.text.size() > parser_.capacity()) {
    const size_t capacity = std::max(item.text.size() * 2, size_t{64} << 10);
    if (parser_.allocate(std::min<size_t>(capacity, simdjson::SIMDJSON_MAXSIZE_BYTES)) !=
        simdjson::SUCCESS) {
      return Malformed(item, "is too large");
    }
  }
  element_end_ = item.text.data() + item.text.size();
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  auto error = parser_
                   .iterate(simdjson::padded_string_view(item.text,
                                                         item.text.size() + JsonElements::kPadding))
                   .get(document);
  if (error == simdjson::SUCCESS) error = document.get_object().get(object);
  if (error == simdjson::SUCCESS) error = ReadElement(item, object);
  if (error == simdjson::SUCCESS) return {};
  const std::string problem = std::exchange(problem_, {});
  ETUDE_ASSIGN_OR_RETURN(const bool again, elements_.Reread());
  if (again) {
    --element_count_;
    return {};
  }
  return Malformed(item, problem.empty() ? simdjson::error_message(error) : problem.c_str());
}

Status JsonReaderBase::Malformed(const JsonItem& item, std::string_view what) {
  std::string message =
      elements_.Message(item.offset, std::string(element_word_) + " " + std::to_string(item.index) +
                                         " cannot be read: " + std::string(what));
  if (options_.strict) return BadInput(std::move(message));
  builder_.stats().Count(Stat::kMalformedElement);
  if (first_malformed_.empty()) first_malformed_ = std::move(message);
  return {};
}

void JsonReaderBase::SayRepairs() {
  const Stats& stats = elements_.stats();
  if (const uint64_t names = stats[Stat::kRepairedName]; names != 0) {
    context_.Warn(name_ + ": repaired " + FormatCount(names, "name", "names") +
                  " with unescaped quotation marks; the first: " + elements_.first_name());
  }
  if (const uint64_t commas = stats[Stat::kRepairedComma]; commas != 0) {
    context_.Warn(name_ + ": repaired " +
                  FormatCount(commas, "missing or surplus comma", "missing or surplus commas") +
                  "; the first: " + elements_.first_comma());
  }
}

Status JsonReaderBase::CheckEnd(bool cut) {
  const bool complete = elements_.complete();
  if (elements_.offset() == 0) {
    return BadInput(name_ + ": found an empty file, expected a JSON trace");
  }
  const std::string kept =
      std::to_string(builder_.node_count()) + " complete " + std::string(element_word_) + "s";
  if (!complete || cut) {
    std::string message = name_ + ":" + elements_.Where() + ": the " +
                          (complete ? "compressed file" : "document") + " ends early";
    if (options_.strict) return BadInput(message + ", after " + kept);
    builder_.stats().Count(Stat::kTruncated);
    context_.Warn(message + "; kept its " + kept);
  }
  if (const uint64_t trailing = elements_.trailing_bytes() + foreign_bytes(); trailing != 0) {
    std::string message =
        name_ + ": " + std::to_string(trailing) + " bytes follow the end of the document";
    if (options_.strict) return BadInput(std::move(message));
    builder_.stats().Count(Stat::kTrailingData, trailing);
    context_.Warn(message);
  }
  SayRepairs();
  const uint64_t malformed = builder_.stats()[Stat::kMalformedElement];
  if (malformed != 0) {
    context_.Warn(name_ + ": skipped " +
                  FormatCount(malformed, "malformed " + std::string(element_word_)) +
                  (malformed == 1 ? ": " : "; the first: ") + first_malformed_);
  }
  return {};
}

Result<Trace> JsonReaderBase::Finish(bool cut) {
  elements_.End();
  ETUDE_RETURN_IF_ERROR(Drain());
  if (element_count_ != 0 && builder_.stats()[Stat::kMalformedElement] == element_count_) {
    const std::string others = " (nor any other of " + std::to_string(element_count_) + ")";
    return BadInput(first_malformed_ + (element_count_ == 1 ? "" : others));
  }
  ETUDE_RETURN_IF_ERROR(CheckEnd(cut));
  ETUDE_RETURN_IF_ERROR(BeforeFinish());
  builder_.stats().Add(elements_.stats());
  auto trace = builder_.Finish();
  if (!trace) return BadInput(name_ + ": " + trace.error().message);
  return trace;
}

std::optional<std::string_view> JsonReaderBase::RawText(const char* begin) {
  const std::string_view rest(begin, static_cast<size_t>(element_end_ - begin));
  const auto value = JsonValueAt(rest);
  if (!value) return std::nullopt;
  builder_.stats().Count(Stat::kNonFiniteNumber, value->non_finite);
  return value->text;
}

void JsonReaderBase::KeepMember(std::string_view key, std::string_view text) {
  builder_.stats().Count(Stat::kNonFiniteNumber, CheckJson(text).non_finite);
  builder_.info().extras.push_back({.key = builder_.Intern(key), .text = builder_.Intern(text)});
}

std::optional<std::string> JsonReaderBase::Unescaped(std::string_view text) {
  const simdjson::padded_string padded(text);
  simdjson::ondemand::document document;
  std::string_view unescaped;
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) return std::nullopt;
  if (document.get_string().get(unescaped) != simdjson::SUCCESS) return std::nullopt;
  return std::string(unescaped);
}

}  // namespace etude
