#include "src/formats/kineto/json_arguments.h"

#include "src/formats/json/json_text.h"
#include "src/formats/json/json_walk.h"

namespace etude {

std::string_view BetweenQuotes(std::string_view token) {
  const bool is_text = token.size() >= 2 && token.starts_with('"') && token.ends_with('"');
  return is_text ? token.substr(1, token.size() - 2) : std::string_view();
}

simdjson::error_code JsonArguments::Read(std::string_view key, simdjson::ondemand::value& value,
                                         ProfilerEvent& event) {
  const std::string_view token = ScalarToken(value);
  const EventArguments::Known known = names_.Find(key);
  bool is_taken = false;
  if (known.arg != ArgMeaning::kUnknown) {
    EventArguments::Scalar scalar{.text = token, .raw = token.data()};
    if (token.starts_with('"')) {
      scalar.is_text = true;
      scalar.text = BetweenQuotes(token);
      if (EventArguments::NeedsUnescaped(known)) {
        if (const auto error = value.get_string().get(scalar.text)) return error;
      }
    }
    is_taken = EventArguments::Take(known, scalar, event);
  }
  if (!is_taken) event.extras.push_back({.key = key, .text = {token.data(), 0}});
  return simdjson::SUCCESS;
}

bool CutExtras(ProfilerEvent& event, const char* end, Stats& stats) {
  for (ProfilerEvent::Extra& extra : event.extras) {
    if (!extra.text.empty()) continue;
    const char* begin = extra.text.data();
    const auto value = JsonValueAt({begin, static_cast<size_t>(end - begin)});
    if (!value) return false;
    stats.Count(Stat::kNonFiniteNumber, value->non_finite);
    extra.text = value->text;
  }
  return true;
}

}  // namespace etude
