// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_DRIVER_PROCESS_H_
#define HARNESS_RAY_DRIVER_PROCESS_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/json.h"
#include "harness/base/subprocess.h"

namespace bkm {

// How the driver is started.
struct RayDriver {
  Command command;
  std::filesystem::path log;  // its stderr
};

// The driver and the lines to and from it. Nothing here waits for the driver to read: what it has
// not taken yet is kept.
class DriverProcess {
 public:
  explicit DriverProcess(RayDriver driver) : driver_(std::move(driver)) {}
  // Lets the driver end by itself, which ends what it started on the nodes; kills it if that takes
  // long.
  ~DriverProcess();
  DriverProcess(const DriverProcess&) = delete;

  absl::Status Start();
  void Send(const Json& message) { unsent_ += ToLine(message) + "\n"; }
  // Waits at most so long for lines, or until `interrupt_fd` (-1: none) is readable, and returns
  // the lines.
  std::vector<std::string> Lines(std::chrono::milliseconds wait, int interrupt_fd);
  // Whether it has ended. Then Start() starts another one.
  bool ended() const { return !process_.from_child.valid(); }
  // How the last one ended, for people: the last line of its log.
  std::string Why() const;

 private:
  void Write();
  void Read(std::vector<std::string>& lines);
  void Reap();

  const RayDriver driver_;
  PipedProcess process_;
  std::string unsent_;
  size_t sent_ = 0;  // of unsent_
  std::string buffer_;
};

}  // namespace bkm

#endif  // HARNESS_RAY_DRIVER_PROCESS_H_
