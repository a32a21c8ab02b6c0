// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/supervisor.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/embedded_python.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/cell/capabilities.h"
#include "harness/cell/cell_environment.h"
#include "harness/cell/cell_folder.h"
#include "harness/cell/confinement.h"
#include "harness/cell/hosted_command.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/sandbox_levels.h"
#include "harness/cell/system_error.h"
#include "harness/cell/system_view.h"
#include "harness/cell/worker_settings.h"
#include "harness/model/cell_facts.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kLongestRequest = 1 << 20;
constexpr size_t kLongestReply = 256 << 20;
// A worker has no reason to say more; its packages might.
constexpr int64_t kMostLog = 16 << 20;
// How deep a reply may nest: whoever prints it calls itself for each level.
constexpr int kDeepestReply = 128;
constexpr auto kPatience = std::chrono::seconds(20);

bool IsShallow(absl::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestReply) return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

// The number of a process in this process's /proc.
std::optional<pid_t> PidOf(int pidfd) {
  const Descriptor file(
      ::open(absl::StrCat("/proc/self/fdinfo/", pidfd).c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!file.valid() || ::read(file.get(), text, sizeof text - 1) <= 0) return std::nullopt;
  const absl::string_view all = text;
  const size_t at = all.find("Pid:");
  int pid = 0;
  if (at == all.npos || std::sscanf(text + at, "Pid: %d", &pid) != 1 || pid <= 0)
    return std::nullopt;
  return pid;
}

int Wait(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Cells of root run as another user. What a file below the path allows is not looked at: whoever
// made it, made all of it under one umask.
absl::Status CheckIsReadable(const std::set<fs::path>& paths) {
  for (const fs::path& path : paths) {
    struct stat info = {};
    const mode_t needed =
        ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    if (info.st_mode != 0 && (info.st_mode & needed) != needed) {
      return absl::FailedPreconditionError(
          absl::StrCat("the user that cells run as may not read ", path.string(),
                       ", as after umask 077: chmod -R go+rX ", path.string()));
    }
  }
  return absl::OkStatus();
}

// What makes the worker lies beside this program: the program that embeds Python, or the library
// that the interpreter loads.
fs::path WorkerFile(bool alone) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  return own.parent_path() / (alone ? "libbkm_worker.so" : "python_worker");
}

// Whether another user could read these paths by their names.
bool IsReachable(uid_t user, const std::vector<fs::path>& paths) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) ::_exit(1);
    for (const fs::path& path : paths) {
      if (::access(path.c_str(), R_OK) != 0) ::_exit(1);
    }
    ::_exit(0);
  }
  return child > 0 && Wait(child) == 0;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, std::unique_ptr<SubjectViews> trees)
    : options_(std::move(options)), trees_(std::move(trees)), open_(options_.in.valid()) {}

Supervisor::~Supervisor() {
  if (worker_ <= 0) return;
  ::kill(worker_, SIGKILL);
  Wait(worker_);
}

absl::Status Supervisor::Start() {
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = TakeStopSignals();
  const absl::Status started = StartWorker();
  if (started.ok() || options_.level == SandboxLevel::kOff) return started;
  // What exactly is missing? If nothing is, the error is another one.
  const std::vector<std::string> missing = MissingProtections(options_.level);
  return missing.empty() ? started : LevelNotAvailable(options_.level, missing);
}

absl::Status Supervisor::StartWorker() {
  if (options_.level != SandboxLevel::kOff) {
    const absl::StatusOr<CellUsers> users = ChooseCellUsers();
    if (users.ok()) {
      users_ = *users;
    } else if (IsFull()) {
      return users.status();
    }
  }
  groups_ = FindGroupParents(ReadFile("/proc/self/mountinfo").value_or(""),
                             ReadFile("/proc/self/cgroup").value_or(""));
  CellGroups::RemoveStale(groups_);
  if (IsFull()) RETURN_IF_ERROR(EnterOwnMounts());
  ASSIGN_OR_RETURN(auto sockets, Channel::MakePair());
  ASSIGN_OR_RETURN(Pipe log, MakePipe());
  const Descriptor theirs = ToPrivate(std::move(sockets.second));
  const Descriptor their_log = ToPrivate(std::move(log.write));
  RETURN_IF_ERROR(StartInSandbox(theirs.get(), their_log.get()));
  channel_ = Channel(std::move(sockets.first), kLongestReply);
  log_ = std::move(log.read);
  ::fcntl(log_.get(), F_SETFL, O_NONBLOCK);
  if (!channel_.Send(settings_))
    return absl::UnavailableError("the worker ended before it took its settings");
  return absl::OkStatus();
}

absl::Status Supervisor::StartInSandbox(int channel, int log) {
  // Private: the worker's descriptors take the low numbers.
  const fs::path file = WorkerFile(options_.alone);
  const Descriptor program = ToPrivate(Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC)));
  const Descriptor nothing = ToPrivate(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  if (!program.valid() || !nothing.valid())
    return SystemError(absl::StrCat("cannot open ", file.string()));
  std::set<fs::path> seen;
  const SystemView environment_view = FindEnvironmentView(options_.python);
  seen.insert(environment_view.reads.begin(), environment_view.reads.end());
  // Bazel's folders hold links, each to another folder of links: cells get what they lead to.
  std::error_code missing;
  const fs::path code = fs::canonical(options_.python_code / "bkm_cell/cell.py", missing);
  if (!missing) options_.python_code = code.parent_path().parent_path();
  seen.insert(options_.python_code);
  for (const fs::path& path : options_.reads) seen.insert(path);
  if (!options_.kernels.empty()) seen.insert(options_.kernels);
  if (!options_.bytecode.empty()) RETURN_IF_ERROR(CreateDirectories(options_.bytecode));

  shown_.assign(seen.begin(), seen.end());

  WorkerSettings settings = {.python = options_.python,
                             .python_code = options_.python_code,
                             .preload = options_.preload,
                             .bytecode = options_.bytecode,
                             .jobs = options_.jobs,
                             .trial_user = users_.CellInside(0)};
  Confinement confinement{.level = options_.level, .users = users_};
  settings.sandbox.level = options_.level;
  if (IsFull()) {
    if (users_.other) {
      RETURN_IF_ERROR(CheckIsReadable(seen));
      RETURN_IF_ERROR(CheckIsReadable({file}));
    }
    ASSIGN_OR_RETURN(confinement, SystemConfinement(users_));
    confinement.links.insert(confinement.links.end(), environment_view.links.begin(),
                             environment_view.links.end());
    for (const fs::path& path : seen) RETURN_IF_ERROR(AddPath(confinement, path, Access::kRead));
    if (!options_.bytecode.empty())
      RETURN_IF_ERROR(AddPath(confinement, options_.bytecode, Access::kRead));
    settings.sandbox = SharedWithCells(confinement);
  } else {
    std::vector<fs::path>& shared = settings.sandbox.shared;
    shared = SystemPaths();
    shared.insert(shared.end(), seen.begin(), seen.end());
    if (!options_.bytecode.empty()) shared.push_back(options_.bytecode);
  }
  // Without namespaces, root becomes someone else only where that user can reach everything.
  if (options_.level == SandboxLevel::kWeak && users_.other) {
    std::vector<fs::path> needed = {fs::current_path(), CacheDirectory(), options_.python,
                                    options_.python_code};
    if (!IsReachable(users_.worker_outside, needed)) users_.other = false;
  }
  std::map<std::string, std::string> environment = CellEnvironment(options_.python);
  const fs::path libpython = options_.alone ? fs::path() : FindLibpython(options_.python);
  // Not by LD_LIBRARY_PATH, which would come before the paths of the environment's own libraries.
  if (!libpython.empty()) environment["LD_PRELOAD"] = libpython;
  ASSIGN_OR_RETURN(
      worker_, StartConfined(confinement, [&]() -> absl::Status {
        if (::dup2(nothing.get(), 0) != 0 || ::dup2(log, 1) != 1 || ::dup2(log, 2) != 2 ||
            ::dup2(channel, kWorkerChannel) != kWorkerChannel)
          return SystemError("cannot set up the worker's descriptors");
        if (IsFull()) {
          RETURN_IF_ERROR(KeepOnlyCapabilities({CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_NET_ADMIN,
                                                CAP_SETPCAP, CAP_SETUID, CAP_SETGID, CAP_KILL,
                                                CAP_DAC_OVERRIDE, CAP_SYS_CHROOT}));
        } else if (options_.level == SandboxLevel::kWeak) {
          const bool other = users_.other;
          RETURN_IF_ERROR(DropAllCapabilities(other ? users_.worker_outside : ::geteuid(),
                                              other ? users_.worker_outside : ::getegid()));
        }
        if (options_.alone) return ExecuteHosted(options_.python, program.get(), environment);
        return Execute(program.get(), {"python_worker", "worker"}, environment, kWorkerChannel);
      }));
  settings_ = ToLine(ToJson(settings));
  return absl::OkStatus();
}

void Supervisor::Take(absl::string_view line) {
  Json json = IsShallow(line) ? Json::parse(line.begin(), line.end(), nullptr,
                                            /*allow_exceptions=*/false)
                              : Json();
  if (!json.is_object()) {
    std::cerr << "cell_worker: ignored a line that is not a JSON object\n";
    return;
  }
  const Json type = json.value("type", Json());
  const Json cell = json.value("cell", Json());
  if (!cell.is_string()) {
    std::cerr << "cell_worker: ignored a request without a cell\n";
  } else if (type == "run") {
    waiting_.push_back({cell.get<std::string>(), std::move(json)});
  } else if (type == "cancel") {
    Cancel(cell.get<std::string>());
  } else {
    std::cerr << "cell_worker: ignored a request of type " << type << "\n";
  }
}

int Supervisor::Run() {
  std::optional<Clock::time_point> deadline;
  const pid_t parent = ::getppid();
  while (true) {
    if (ready_) StartCells();
    if (!open_ && waiting_.empty() && running_.empty()) EndInput();
    if (told_end_ && !deadline && ready_) deadline = Clock::now() + kPatience;
    // Nobody waits for a worker whose parent has died.
    const bool abandoned = told_end_ && ::getppid() != parent;
    if (abandoned || (deadline && Clock::now() > *deadline)) ::kill(worker_, SIGKILL);
    std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0},
                               {open_ ? options_.in.get() : -1, POLLIN, 0},
                               {channel_.fd(), POLLIN, 0},
                               {log_.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), told_end_ ? 1000 : -1) < 0) continue;
    if (fds[0].revents) {
      signalfd_siginfo signal = {};
      while (::read(signals_.get(), &signal, sizeof signal) > 0) {
      }
      EndInput();
    }
    if (open_ && fds[1].revents) ReadRequests();
    if (fds[3].revents) ReadLog();
    if (fds[2].revents && !ReadReplies()) break;
  }
  ReadLog();
  // It may have closed its channel and live on.
  const Descriptor worker(static_cast<int>(::syscall(SYS_pidfd_open, worker_, 0)));
  pollfd ended = {worker.get(), POLLIN, 0};
  if (::poll(&ended, 1, 5000) != 1) ::kill(worker_, SIGKILL);
  const int status = Wait(worker_);
  worker_ = -1;
  if (compiler_ > 0) Wait(compiler_);
  return status;
}

// The names are a worker's, which may have been told them by a package: all that they can do is to
// have bkm compile another file of the environment.
void Supervisor::Compile(const Json& sources) {
  if (options_.bytecode.empty() || !sources.is_array()) return;
  std::string names;
  for (const Json& source : sources) {
    const fs::path path = source.is_string() ? source.get<std::string>() : "";
    const auto is_shown = [&](const fs::path& file) {
      return std::any_of(shown_.begin(), shown_.end(),
                         [&](const fs::path& place) { return IsAtOrBelow(file, place); });
    };
    std::error_code error;
    // Cells read what is compiled: a link must not lead to what they are not shown.
    if (is_shown(path) && is_shown(fs::canonical(path, error)) && path.extension() == ".py" &&
        path == path.lexically_normal() && path.string().find('\n') == std::string::npos)
      absl::StrAppend(&names, path.string(), "\n");
  }
  if (names.empty()) return;
  const Command command = {.argv = {options_.python.string(), "-I", "-S", "-X",
                                    absl::StrCat("pycache_prefix=", options_.bytecode.string()),
                                    "-m", "compileall", "-qq", "-i", "-"},
                           .unset_env = {"SOURCE_DATE_EPOCH"},
                           .directory = "/"};
  absl::StatusOr<PipedProcess> compiler = StartPiped(command, "/dev/null");
  if (!compiler.ok()) return;  // the next worker compiles in memory, as this one did
  WriteAll(compiler->to_child.get(), names);
  compiler_ = compiler->pid;
}

void Supervisor::ReadRequests() {
  char buffer[65536];
  const ssize_t n = ::read(options_.in.get(), buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) return EndInput();
  absl::string_view bytes(buffer, static_cast<size_t>(n));
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, newline);
    too_long_ = too_long_ || line_.size() + piece.size() > kLongestRequest;
    if (!too_long_) line_.append(piece.data(), piece.size());
    if (newline == bytes.npos) return;
    bytes.remove_prefix(newline + 1);
    const std::string line = std::exchange(line_, "");
    if (std::exchange(too_long_, false)) {
      std::cerr << "cell_worker: ignored a request of more than " << kLongestRequest << " bytes\n";
    } else {
      Take(line);
    }
  }
}

// No more requests: cells that wait are cancelled here, cells that run by the worker.
void Supervisor::EndInput() {
  open_ = false;
  for (const Waiting& one : std::exchange(waiting_, {}))
    FinishUnstarted(one.cell, EndingKind::kCancelled, "");
  if (std::exchange(told_end_, true)) return;
  channel_.EndSending();
}

void Supervisor::Cancel(const std::string& cell) {
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Waiting& one) { return one.cell == cell; });
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
    FinishUnstarted(cell, EndingKind::kCancelled, "");
  } else if (running_.contains(cell)) {
    channel_.Send(ToLine({{"type", "cancel"}, {"cell", cell}}));
  }
}

int Supervisor::FreeSlot() const {
  for (int slot = 0;; ++slot) {
    const bool taken = std::any_of(running_.begin(), running_.end(),
                                   [&](const auto& cell) { return cell.second.slot == slot; });
    if (!taken) return slot;
  }
}

void Supervisor::StartCells() {
  while (running_.size() < static_cast<size_t>(options_.jobs) && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const absl::Status sent = running_.contains(next.cell)
                                  ? absl::InvalidArgumentError("this cell is running already")
                                  : SendOrder(next, FreeSlot());
    if (!sent.ok()) FinishUnstarted(next.cell, EndingKind::kForkFailed, sent.message());
  }
}

absl::Status Supervisor::SendOrder(const Waiting& waiting, int slot) {
  Json asked = waiting.request;
  if (!options_.kernels.empty()) asked["kernels"] = options_.kernels.string();
  ASSIGN_OR_RETURN(const CellRequest request, ParseCellRequest(asked));
  CellOrder order{.cell = request.cell, .limits = request.limits};
  if (options_.level == SandboxLevel::kWeak && request.several_ranks) {
    return absl::UnavailableError(
        "ranks connect to each other, and the sandbox level weak keeps cells from all connections: "
        "use full or off");
  }
  order.user = users_.CellInside(slot);
  std::optional<uid_t> owner;
  if (users_.other) owner = IsFull() ? users_.CellOutside(slot) : users_.worker_outside;
  ASSIGN_OR_RETURN(CellStreams streams, PrepareCellFolder(request.dir, owner));
  order.out = std::move(streams.out);
  order.err = std::move(streams.err);
  std::vector<fs::path> attached;
  if (IsFull()) {
    ASSIGN_OR_RETURN(attached, Attach(request, order));
  } else {
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    order.work = Descriptor(::open((request.dir / "work").c_str(), kFlags));
    order.tensors = Descriptor(::open((request.dir / "tensors").c_str(), kFlags));
  }
  ASSIGN_OR_RETURN(order.question, WriteQuestion(asked, attached));
  Running running{.slot = slot, .order = waiting, .machine_kills = MachineOutOfMemoryKills()};
  running.groups.emplace(groups_, absl::StrCat(::getpid(), "-", slot), request.limits);
  order.doors = running.groups->Doors();
  order.cpu_account = running.groups->CpuAccount();
  if (!Send(channel_, order)) {
    trees_->End(request.cell);
    return absl::UnavailableError("the cell worker does not take requests any more");
  }
  running_.insert_or_assign(request.cell, std::move(running));
  return absl::OkStatus();
}

// Adds what the cell sees beside what all cells share, and returns where each belongs.
absl::StatusOr<std::vector<fs::path>> Supervisor::Attach(const CellRequest& request,
                                                         CellOrder& order) {
  std::vector<fs::path> attached;
  const auto attach = [&](const fs::path& path, absl::StatusOr<Descriptor> tree) {
    if (!tree.ok()) return tree.status();
    attached.push_back(path);
    order.attachments.push_back(*std::move(tree));
    return absl::OkStatus();
  };
  for (const auto& [name, folder] :
       {std::pair("work", &order.work), std::pair("tensors", &order.tensors)}) {
    RETURN_IF_ERROR(attach(request.dir / name, OpenMountTree(request.dir / name, Access::kWrite)));
    *folder = Descriptor(::dup(order.attachments.back().get()));
  }
  for (const auto& [subject, tree] : request.trees) {
    for (const fs::path& path : Spellings(tree))
      RETURN_IF_ERROR(attach(path, trees_->Open(request.cell, subject, path)));
  }
  for (const fs::path& path : Spellings(request.probe_dir))
    RETURN_IF_ERROR(attach(path, OpenMountTree(path, Access::kRead)));
  if (request.on_cpu) return attached;
  const SystemView gpu = FindGpuView(/*several=*/request.several_ranks);
  for (const fs::path& path : gpu.devices)
    RETURN_IF_ERROR(attach(path, OpenMountTree(path, Access::kDevice)));
  for (const fs::path& path : gpu.reads)
    RETURN_IF_ERROR(attach(path, OpenMountTree(path, Access::kRead)));
  return attached;
}

bool Supervisor::ReadReplies() {
  std::vector<Packet> packets;
  const bool more = channel_.Receive(packets);
  for (Packet& packet : packets) HandleReply(std::move(packet));
  return more;
}

void Supervisor::ReadLog() {
  char buffer[65536];
  while (log_.valid()) {
    const ssize_t n = ::read(log_.get(), buffer, sizeof buffer);
    if (n == 0) log_.Close();
    if (n <= 0) return;
    logged_ += n;
    if (logged_ <= kMostLog) WriteAll(2, absl::string_view(buffer, static_cast<size_t>(n)));
  }
}

void Supervisor::HandleReply(Packet packet) {
  Json line = IsShallow(packet.text) ? Json::parse(packet.text, nullptr, /*allow_exceptions=*/false)
                                     : Json();
  if (!line.is_object() || !line.contains("type") || !line["type"].is_string()) return;
  const std::string type = line["type"].get<std::string>();
  if (type == "ready" && !ready_) {
    ready_ = true;
    if (line.contains("versions")) versions_ = line["versions"];
    const Json protections = line.value("protections", Json::array());
    line.erase("protections");
    Compile(line.value("uncompiled", Json()));
    line.erase("uncompiled");
    line["sandbox"] = {{"level", std::string(Name(options_.level))},
                       {"uid", users_.other ? users_.CellOutside(0) : ::geteuid()},
                       {"protections", protections}};
    if (!options_.only_finished) Reply(line);
  } else if (type == "fatal") {
    Reply(line);
  }
  const Json cell = line.value("cell", Json());
  if (!cell.is_string() || !running_.contains(cell.get<std::string>())) return;
  if (type == "started" && !options_.only_finished) {
    if (!packet.descriptors.empty()) {
      if (const std::optional<pid_t> pid = PidOf(packet.descriptors[0].get())) line["pid"] = *pid;
    }
    Reply(line);
  } else if (type == "finished") {
    Finish(cell.get<std::string>(), std::move(line));
  } else if (type == "unstarted") {
    running_.erase(cell.get<std::string>());
    FinishUnstarted(cell.get<std::string>(),
                    TextOf(line, "kind") == Name(EndingKind::kCancelled) ? EndingKind::kCancelled
                                                                         : EndingKind::kForkFailed,
                    TextOf(line, "message"));
  }
}

// Says in `ending` what the kernel knows of it. False, if the cell should run once more.
bool Supervisor::ExplainEnding(const Running& running, const std::string& overrun,
                               Json& ending) const {
  const Json kind = ending.value("kind", Json());
  if (kind == "timed-out" || kind == "cancelled" || kind == "limit" || kind == "fork-failed")
    return true;
  if (running.groups) {
    if (const std::optional<GroupOverrun> overrun = running.groups->Overrun()) {
      ending = {{"kind", "limit"}, {"limit", overrun->limit}, {"message", overrun->message}};
      return true;
    }
  }
  if (!overrun.empty()) {
    ending = {{"kind", "limit"}, {"limit", "events"}, {"message", overrun}};
    return true;
  }
  if (!ending.contains("from_outside")) return true;
  // The machine was short of memory, and no fault of this cell's is known.
  if (MachineOutOfMemoryKills() > running.machine_kills) return true;
  // The sender of SIGKILL is unknown. A person or a dying machine does not do it twice; a subject
  // that kills itself does.
  if (!running.order.killed && !told_end_) return false;
  if (!running.order.killed) return true;
  ending.erase("from_outside");
  ending["message"] = "killed twice, and the machine was not short of memory";
  return true;
}

void Supervisor::Finish(const std::string& cell, Json line) {
  const auto found = running_.find(cell);
  Running running = std::move(found->second);
  running_.erase(found);
  auto [observed, overrun] = trees_->End(cell);
  Json& observation = line["observation"];
  if (observation.is_object() && observation["ending"].is_object() &&
      !ExplainEnding(running, overrun, observation["ending"])) {
    running.order.killed = true;
    waiting_.push_front(std::move(running.order));
    return;
  }
  // What exceeds a limit may be more than other programs can handle: folders without end.
  const std::string limit = TextOf(ObjectOf(observation, "ending"), "limit");
  if (limit == "output" || limit == "files") {
    const absl::StatusOr<CellRequest> request = ParseCellRequest(running.order.request);
    for (const char* name : {"work", "tensors"})
      if (request.ok()) RemoveTree(request->dir / name).IgnoreError();
  }
  // The worker watches the cell's processes, and runs no code of a subject.
  if (const auto process = line.find("process"); process != line.end()) {
    if (observed.is_null()) observed = Json::object();
    observed["process"] = std::move(*process);
    line.erase("process");
  }
  line.erase("observed");
  if (!observed.is_null()) line["observed"] = std::move(observed);
  Reply(line);
}

void Supervisor::FinishUnstarted(const std::string& cell, EndingKind why,
                                 absl::string_view message) {
  trees_->End(cell);
  Json observation = CellFacts::NeverRan(why, message).json();
  observation["versions"] = versions_;
  Reply({{"type", "finished"}, {"cell", cell}, {"observation", std::move(observation)}});
}

void Supervisor::Reply(const Json& json) {
  if (WriteAll(options_.out, ToLine(json) + "\n")) return;
  // Nobody reads the replies any more.
  waiting_.clear();
  EndInput();
}

}  // namespace bkm
