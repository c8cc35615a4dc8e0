#pragma once

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace etude {

// Operations on open files, by descriptor.

// Writes all bytes; returns false and sets errno if a write fails.
inline bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Reads `file`, which may be a pipe, to its end.
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

// Returns a path to the same file, valid while the file is open, in this process and in those that
// inherit the descriptor.
inline std::string PathOfOpen(int file) { return "/proc/self/fd/" + std::to_string(file); }

// Returns true if `name` still refers to the open file.
inline bool HasName(int file, const std::string& name) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Locks the file to mark it as in use for LockAbandoned in any process. Blocks while another
// process holds the lock.
inline void Lock(int file) {
  while (::flock(file, LOCK_EX) != 0 && errno == EINTR) continue;
}

// Locks the file; returns false if another process holds the lock. Succeeds on file systems without
// locks.
inline bool TryLock(int file) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// Locks the file if it is unlocked and `name` still refers to it; returns false otherwise.
inline bool LockAbandoned(int file, const std::string& name) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0 && HasName(file, name);
}

// Opens and locks a new file. `open_new` creates it, stores its path in `name` and returns the
// descriptor, or -1 with errno set. Repeats if another process takes the file as abandoned before
// it is locked.
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
