// What the checker of the CPU engines reports.
#pragma once
#include <array>
#include <stdexcept>
#include <string>

namespace attn::simt {

/// The classes of fault that the checker tells apart.
enum class FaultKind {
  data_race,             ///< two unordered accesses to one cell, at least one a plain write
  out_of_bounds,         ///< outside shared memory, or outside what the launch may address
  misaligned,            ///< the address is not a multiple of the access size
  uninitialised_read,    ///< read of bytes that nothing has written
  copy_in_flight,        ///< access to the target of an asynchronous copy not yet waited for
  read_only_write,       ///< write to memory registered as an input
  divergent_collective,  ///< the lanes of a warp do not meet in one warp-wide operation
  deadlock,              ///< no warp can run and not all have finished
  barrier_misuse,        ///< a barrier with a bad id or with participants that do not add up
};

/// The words a message begins with, such as "data race".
const char* name(FaultKind kind);

/// Thrown by a launch on a CPU engine when the checker has found a fault. `what()` is one line:
///
///     data race    shared memory +0x4a0   written by warp 2 at flash_forward.h:118, read by ...
class CheckerFault : public std::runtime_error {
 public:
  CheckerFault(FaultKind kind, std::string file, int line, std::array<int, 3> block,
               const std::string& text)
      : std::runtime_error(text), kind_(kind), file_(std::move(file)), line_(line), block_(block) {}

  FaultKind kind() const { return kind_; }  ///< which class of fault
  /// Source file (base name) and line of the access that made the fault visible.
  const std::string& file() const { return file_; }
  int line() const { return line_; }  ///< in that file, from 1 on
  /// Coordinates of the thread block in which the fault was found.
  std::array<int, 3> block() const { return block_; }

 private:
  FaultKind kind_;
  std::string file_;
  int line_;
  std::array<int, 3> block_;
};

}  // namespace attn::simt
