#include "src/suite/data/interactions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"
#include "src/base/zipf_ranks.h"
#include "src/formats/io/file_text.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr size_t kFieldsOfLine = 3;

// Splits `line` at blanks; nullopt unless there are three fields.
std::optional<std::array<std::string_view, kFieldsOfLine>> FieldsOf(std::string_view line) {
  std::array<std::string_view, kFieldsOfLine> fields;
  size_t found = 0;
  for (size_t begin = 0; begin < line.size();) {
    if (IsBlank(line[begin])) {
      ++begin;
      continue;
    }
    const auto end = static_cast<size_t>(
        std::find_if(line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(), IsBlank) -
        line.begin());
    if (found == kFieldsOfLine) return std::nullopt;
    fields[found++] = line.substr(begin, end - begin);
    begin = end;
  }
  if (found != kFieldsOfLine) return std::nullopt;
  return fields;
}

// Numbers names in order of first occurrence, from `first` on.
class NameNumbers {
 public:
  explicit NameNumbers(int64_t first) : next_(first) {}
  int64_t NumberOf(std::string_view name) {
    const auto [entry, added] = numbers_.try_emplace(std::string(name), next_);
    if (added) ++next_;
    return entry->second;
  }
  std::optional<int64_t> Find(std::string_view name) const {
    const auto found = numbers_.find(std::string(name));
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
  int64_t next_;
};

// Calls take(place, line) for the lines of `path` that are not blank; place() is "path:line". Stops
// at an error.
template <typename Take>
Status ForEachLine(const std::string& path, const RunContext& context, Take take) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(path, context.limits));
  std::string_view rest = file.text();
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (std::ranges::all_of(line, IsBlank)) continue;
    ETUDE_RETURN_IF_ERROR(take([&] { return fmt::format("{}:{}", path, number); }, line));
  }
  return {};
}

// Calls take(place, user, item) for the lines of `path`, "user item rating".
template <typename Take>
Status ReadLines(const std::string& path, const RunContext& context, Take take) {
  return ForEachLine(path, context, [&](const auto& place, std::string_view line) -> Status {
    const auto fields = FieldsOf(line);
    if (!fields) {
      return BadInput(fmt::format("{}: found '{}', expected 'user item rating'", place(),
                                  Printable(line.substr(0, 60))));
    }
    return take(place, (*fields)[0], (*fields)[1]);
  });
}

constexpr std::string_view kRatingsHeader = "userId,movieId,rating,timestamp";

}  // namespace

Result<Interactions> ReadInteractions(const std::string& folder, const RunContext& context) {
  Interactions data;
  NameNumbers users(0);
  NameNumbers items(1);
  const std::string train = folder + "/train.txt";
  ETUDE_RETURN_IF_ERROR(
      ReadLines(train, context,
                [&](const auto& /*place*/, std::string_view user, std::string_view item) -> Status {
                  const auto number = static_cast<size_t>(users.NumberOf(user));
                  if (number == data.users.size()) data.users.emplace_back();
                  const int64_t chosen = items.NumberOf(item);
                  data.items = std::max(data.items, chosen);
                  data.users[number].learned.push_back(chosen);
                  return {};
                }));
  if (data.users.empty()) return BadInput(train + ": found no lines, expected 'user item rating'");
  const std::string test = folder + "/test.txt";
  bool is_any_asked = false;
  ETUDE_RETURN_IF_ERROR(
      ReadLines(test, context,
                [&](const auto& place, std::string_view user, std::string_view item) -> Status {
                  const std::optional<int64_t> number = users.Find(user);
                  if (!number) {
                    return BadInput(fmt::format("{}: found user '{}', expected a user of train.txt",
                                                place(), Printable(user.substr(0, 60))));
                  }
                  Interactions::User& one = data.users[static_cast<size_t>(*number)];
                  one.is_asked = is_any_asked = true;
                  if (const auto known = items.Find(item)) one.held_out.push_back(*known);
                  return {};
                }));
  if (!is_any_asked) return BadInput(test + ": found no lines, expected 'user item rating'");
  return data;
}

Result<Interactions> ReadRatings(const std::string& path, const RunContext& context) {
  Interactions data;
  NameNumbers users(0);
  NameNumbers items(1);
  std::vector<std::vector<int64_t>> times;  // by user, of each item
  bool has_header = false;
  const auto take = [&](const auto& place, std::string_view line) -> Status {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!std::exchange(has_header, true)) {
      if (line == kRatingsHeader) return {};
      return BadInput(fmt::format("{}: found '{}', expected '{}'", place(),
                                  Printable(line.substr(0, 60)), kRatingsHeader));
    }
    std::array<std::string_view, 4> fields;
    std::string_view rest = line;
    for (std::string_view& field : fields) {
      field = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    }
    const auto time = ParseWhole(fields[3]);
    if (fields[0].empty() || fields[1].empty() || !time || !rest.empty()) {
      return BadInput(fmt::format("{}: found '{}', expected '{}'", place(),
                                  Printable(line.substr(0, 60)), kRatingsHeader));
    }
    const auto user = static_cast<size_t>(users.NumberOf(fields[0]));
    if (user == data.users.size()) {
      data.users.emplace_back();
      times.emplace_back();
    }
    const int64_t item = items.NumberOf(fields[1]);
    data.items = std::max(data.items, item);
    data.users[user].learned.push_back(item);
    times[user].push_back(*time);
    return {};
  };
  ETUDE_RETURN_IF_ERROR(ForEachLine(path, context, take));
  if (data.users.empty())
    return BadInput(path + ": no ratings, expected " + std::string(kRatingsHeader));
  for (size_t user = 0; user < data.users.size(); ++user) {
    std::vector<int64_t>& learned = data.users[user].learned;
    std::vector<std::pair<int64_t, int64_t>> ordered;
    for (size_t i = 0; i < learned.size(); ++i) ordered.emplace_back(times[user][i], learned[i]);
    std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
    for (size_t i = 0; i < learned.size(); ++i) learned[i] = ordered[i].second;
  }
  return data;
}

void LeaveLastOut(Interactions& data) {
  constexpr ptrdiff_t kFewest = 3;
  for (Interactions::User& user : data.users) {
    std::vector<int64_t> all = std::move(user.learned);
    all.insert(all.end(), user.held_out.begin(), user.held_out.end());
    std::unordered_set<int64_t> seen;
    std::erase_if(all, [&](int64_t item) { return !seen.insert(item).second; });
    user.held_out.clear();
    user.is_asked = std::ssize(all) >= kFewest;
    if (user.is_asked) {
      user.held_out.push_back(all.back());
      all.pop_back();
    }
    user.learned = std::move(all);
  }
}

void ShuffleLearned(Interactions& data, uint64_t seed) {
  std::vector<int64_t> items;
  for (const Interactions::User& user : data.users) {
    items.insert(items.end(), user.learned.begin(), user.learned.end());
  }
  RandomStream random(seed);
  Shuffle(std::span(items), random);
  auto next = items.begin();
  for (Interactions::User& user : data.users) {
    for (int64_t& item : user.learned) item = *next++;
  }
}

SequenceWindows WindowsOf(const Interactions& data, int64_t length, int64_t targets) {
  std::vector<int64_t> items;
  std::vector<int64_t> users;
  for (size_t user = 0; user < data.users.size(); ++user) {
    const std::vector<int64_t>& learned = data.users[user].learned;
    const int64_t missing = length + targets - std::ssize(learned);
    if (missing >= length) continue;
    items.insert(items.end(), static_cast<size_t>(std::max<int64_t>(missing, 0)), 0);
    for (auto end = learned.begin() + std::min(length + targets, std::ssize(learned));; ++end) {
      items.insert(items.end(), end - std::min(length + targets, std::ssize(learned)), end);
      users.push_back(static_cast<int64_t>(user));
      if (end == learned.end()) break;
    }
  }
  return {FromValues(items, {std::ssize(users), length + targets}),
          FromValues(users, {std::ssize(users)})};
}

at::Tensor LastOf(const Interactions& data, int64_t length) {
  std::vector<int64_t> items;
  for (const Interactions::User& user : data.users) {
    const int64_t own = std::min(length, std::ssize(user.learned));
    items.insert(items.end(), static_cast<size_t>(length - own), 0);
    items.insert(items.end(), user.learned.end() - own, user.learned.end());
  }
  return FromValues(items, {std::ssize(data.users), length});
}

UnseenItems::UnseenItems(const Interactions& data) : items_(data.items) {
  for (const Interactions::User& user : data.users) {
    std::vector<int64_t>& seen = seen_.emplace_back(user.learned);
    std::ranges::sort(seen);
    seen.erase(std::ranges::unique(seen).begin(), seen.end());
  }
}

std::vector<int64_t> UnseenItems::Sample(int64_t user, int64_t other, int64_t count,
                                         RandomStream& random) const {
  const std::vector<int64_t>& seen = SeenBy(user);
  const auto is_new = [&](int64_t item) {
    return item != other && !std::ranges::binary_search(seen, item);
  };
  std::vector<int64_t> sample;
  if (items_ - std::ssize(seen) > 4 * count) {
    // Most items are unseen, so a seen item is drawn again.
    std::unordered_set<int64_t> drawn;
    while (std::ssize(sample) < count) {
      const auto item = 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(items_)));
      if (is_new(item) && drawn.insert(item).second) sample.push_back(item);
    }
    return sample;
  }
  for (int64_t item = 1; item <= items_; ++item) {
    if (is_new(item)) sample.push_back(item);
  }
  Shuffle(std::span(sample), random);
  sample.resize(std::min(sample.size(), static_cast<size_t>(count)));
  return sample;
}

at::Tensor UnseenItems::Draw(const at::Tensor& users, int64_t count) const {
  const at::Tensor draws = Uniform({users.numel(), count}, 0, 1);
  const auto* draw = draws.const_data_ptr<float>();
  const auto* user = users.const_data_ptr<int64_t>();
  std::vector<int64_t> items;
  items.reserve(static_cast<size_t>(draws.numel()));
  for (int64_t row = 0; row < users.numel(); ++row) {
    std::span<const int64_t> seen = SeenBy(user[row]);
    if (std::ssize(seen) == items_) seen = {};
    const auto unseen = static_cast<double>(items_ - std::ssize(seen));
    for (int64_t column = 0; column < count; ++column) {
      // Finds the item with this many unseen ones before it, by bisection over the seen ones.
      const auto before = static_cast<int64_t>(static_cast<double>(*draw++) * unseen);
      int64_t low = 0;
      int64_t high = std::ssize(seen);
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (seen[static_cast<size_t>(middle)] - 1 - middle <= before) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      items.push_back(before + 1 + low);
    }
  }
  return FromValues(items, {users.numel(), count});
}

}  // namespace etude::suite
