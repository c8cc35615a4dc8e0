#include "src/python/shared_trace.h"

#include "src/base/text/utf8.h"

namespace etude::python {

const Texts& SharedTrace::texts() const {
  std::call_once(once_, [&] {
    const StringPool& strings = trace_.strings();
    texts_.begins.reserve(strings.size() + 1);
    texts_.begins.push_back(0);
    for (size_t i = 0; i < strings.size(); ++i) {
      const std::string_view text = strings.Get(StringId::FromIndex(i));
      if (utf8::IsValid(text)) {
        texts_.bytes += text;
      } else {
        texts_.bytes += utf8::Repair(text);
      }
      texts_.begins.push_back(static_cast<int64_t>(texts_.bytes.size()));
    }
  });
  return texts_;
}

std::shared_ptr<const void> SharedTrace::Kept(
    const std::string& name, const std::function<std::shared_ptr<const void>()>& make) const {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<const void>& kept = kept_[name];
  if (kept == nullptr) kept = make();
  return kept;
}

}  // namespace etude::python
