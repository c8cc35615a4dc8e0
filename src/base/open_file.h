#pragma once

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace etude {

// What the system does with files that are open, by their descriptors.

// Writes all of it; false, with errno set, if the system refuses.
inline bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// All that comes from `file`, a pipe perhaps, until its end.
inline std::string ReadAll(int file) {
  std::string bytes;
  char buffer[1 << 14];
  while (true) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(count));
  }
}

// What opens the same file as long as it is open, in this process and those that inherit it.
inline std::string PathOfOpen(int file) { return "/proc/self/fd/" + std::to_string(file); }

// Whether the file still has this name.
inline bool HasName(int file, const std::string& name) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Marks the file as in use, for LockAbandoned in any process. Blocks while another one holds the
// lock.
inline void Lock(int file) {
  while (::flock(file, LOCK_EX) != 0 && errno == EINTR) continue;
}

// Locks the file unless somebody else holds it (false). On file systems without locks nobody does.
inline bool TryLock(int file) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// Locks the file if nobody holds it and `name` still means it; false otherwise.
inline bool LockAbandoned(int file, const std::string& name) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0 && HasName(file, name);
}

// A new file, locked: `open_new` makes one, whose name `name` has then, and returns -1, with errno
// set, if there cannot be one. Before it is locked it looks abandoned: then another is made.
template <typename OpenNew>
int OpenLocked(const std::string& name, OpenNew open_new) {
  while (true) {
    const int file = open_new();
    if (file < 0) return file;
    Lock(file);
    if (HasName(file, name)) return file;
    ::close(file);
  }
}

}  // namespace etude
