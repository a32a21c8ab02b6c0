// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/torture/bkm_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"

namespace bkm {

BkmProcess::BkmProcess(std::vector<std::string> argv,
                       const std::map<std::string, std::string>& environment,
                       const std::filesystem::path& output) {
  std::vector<std::string> variables;
  for (char** entry = ::environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!environment.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : environment) variables.push_back(absl::StrCat(name, "=", value));
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  const std::vector<char*> arguments = pointers(argv), settings = pointers(variables);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvpe(arguments[0], arguments.data(), settings.data());
  ::_exit(127);
}

BkmProcess::~BkmProcess() {
  if (pid_ <= 0 || ended_) return;
  ::kill(pid_, SIGKILL);
  WaitFor(std::chrono::seconds(60));
}

bool BkmProcess::WaitFor(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!ended_) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      ended_ = true;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    } else if (got < 0 && errno != EINTR) {
      ended_ = true;
      exit_code_ = -1;
    } else if (std::chrono::steady_clock::now() >= until) {
      return false;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return true;
}

}  // namespace bkm
