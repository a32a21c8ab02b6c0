// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/descriptor.h"
#include "harness/base/status_macros.h"
#include "harness/cell/capabilities.h"
#include "harness/cell/cell_environment.h"
#include "harness/cell/landlock.h"
#include "harness/cell/mount_tree.h"
#include "harness/cell/pid_namespace.h"
#include "harness/cell/seccomp_filter.h"
#include "harness/cell/system_error.h"
#include "harness/cell/system_view.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Folders in memory. Their files count against the machine's memory; there are few, because TMPDIR
// is below work/.
constexpr struct {
  const char* path;
  const char* size;
} kInMemory[] = {{"/tmp", "256m"}, {"/dev/shm", "1g"}};

constexpr struct {
  const char* name;        // of the protection
  const char* name_space;  // in /proc/self/ns
  int flag;
} kNamespaceKinds[] = {{"mount", "mnt", CLONE_NEWNS},
                       {"network", "net", CLONE_NEWNET},
                       {"ipc", "ipc", CLONE_NEWIPC},
                       {"uts", "uts", CLONE_NEWUTS},
                       {"cgroup", "cgroup", CLONE_NEWCGROUP}};

ino_t InodeOf(const std::string& name_space) {
  struct stat info = {};
  return ::stat(absl::StrCat("/proc/self/ns/", name_space).c_str(), &info) == 0 ? info.st_ino : 0;
}

// "Key:\tvalue" lines of /proc/self/status.
std::map<std::string, std::string> OwnStatus() {
  std::map<std::string, std::string> result;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    result[line.substr(0, colon)] =
        std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return result;
}

size_t CountWords(const std::string& text) {
  std::istringstream words(text);
  size_t count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

absl::Status EnterRoot(const Sandbox& sandbox, const CellView& view) {
  std::vector<Attachment> all;
  for (const fs::path& path : sandbox.shared) {
    ASSIGN_OR_RETURN(Descriptor tree, CloneReadOnly(path));
    all.push_back({path, std::move(tree)});
  }
  for (const auto& [path, size] : kInMemory) {
    ASSIGN_OR_RETURN(Descriptor tree, MakeMemoryTree(size));
    all.push_back({path, std::move(tree)});
  }
  for (const Attachment& one : view.attachments)
    all.push_back({one.path, Descriptor(::fcntl(one.tree.get(), F_DUPFD_CLOEXEC, 0))});
  ASSIGN_OR_RETURN(const MinimalRoot root, MinimalRoot::Create());
  RETURN_IF_ERROR(root.AttachAll(std::move(all)));
  for (const auto& [path, target] : sandbox.links) RETURN_IF_ERROR(root.Link(path, target));
  // For paths that modules kept during the preload.
  RETURN_IF_ERROR(root.Link(kPreloadHome, view.dir / "work/home"));
  RETURN_IF_ERROR(root.Proc(view.gpu ? ProcView::kHiddenForGpu : ProcView::kHidden));
  return root.Enter();
}

// What is the same for every level, by the kernel's own account.
void CheckRights(const std::map<std::string, std::string>& status,
                 std::vector<std::string>& holding) {
  const auto is = [&](const char* key, absl::string_view value) {
    const auto found = status.find(key);
    return found != status.end() && found->second == value;
  };
  constexpr absl::string_view kNone = "0000000000000000";
  if (is("CapInh", kNone) && is("CapPrm", kNone) && is("CapEff", kNone) && is("CapAmb", kNone))
    holding.push_back("capabilities");
  if (is("NoNewPrivs", "1")) holding.push_back("no-new-privileges");
  const bool filtered = ::syscall(SYS_keyctl, -1, 0, 0, 0, 0) == -1 && errno == EPERM;
  if (is("Seccomp", "2") && filtered) holding.push_back("seccomp");
}

// `asked` must be among `holding`.
absl::Status CheckThatHold(const std::vector<std::string>& asked,
                           const std::vector<std::string>& holding) {
  for (const std::string& name : asked) {
    if (std::find(holding.begin(), holding.end(), name) == holding.end())
      return absl::UnavailableError(
          absl::StrCat("the sandbox was set up, but its protection '", name, "' does not hold"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> EnterFull(const Sandbox& sandbox, const CellView& view) {
  std::map<std::string, ino_t> before;
  int flags = 0;
  for (const auto& one : kNamespaceKinds) {
    before[one.name] = InodeOf(one.name_space);
    flags |= one.flag;
  }
  // The worker's /proc numbers this process once for each process namespace.
  const bool own_processes = CountWords(OwnStatus()["NSpid"]) >= 2;
  if (::unshare(flags) != 0) return SystemError("cannot create the cell's namespaces");
  RETURN_IF_ERROR(EnterRoot(sandbox, view));
  RETURN_IF_ERROR(BringLoopbackUp());
  // The machine's name is no concern of a cell.
  if (::sethostname("localhost", 9) != 0) return SystemError("cannot set the host's name");
  RETURN_IF_ERROR(DropAllCapabilities(view.user, view.user));
  RETURN_IF_ERROR(InstallSeccompFilter(Filtered::kCell));

  std::vector<std::string> holding;
  const std::map<std::string, std::string> status = OwnStatus();
  const std::string user =
      absl::StrCat(view.user, "\t", view.user, "\t", view.user, "\t", view.user);
  if (status.count("Uid") && status.at("Uid") == user && status.at("Gid") == user)
    holding.push_back("user");
  struct statfs kind = {};
  struct statvfs root = {};
  const bool own_root = ::statfs("/", &kind) == 0 && kind.f_type == TMPFS_MAGIC &&
                        ::statvfs("/", &root) == 0 && (root.f_flag & ST_RDONLY);
  for (const auto& one : kNamespaceKinds) {
    const ino_t inode = InodeOf(one.name_space);
    if (inode == 0 || inode == before[one.name]) continue;
    if (one.flag != CLONE_NEWNS || own_root) holding.push_back(one.name);
  }
  char self[32] = {};
  const bool own_proc =
      ::readlink("/proc/self", self, sizeof self - 1) > 0 && absl::StrCat(::getpid()) == self;
  if (own_processes && own_proc) holding.push_back("pid");
  CheckRights(status, holding);
  // With the bounding set empty, no program can ever give a capability back.
  if (status.count("CapBnd") == 0 || status.at("CapBnd") != "0000000000000000")
    holding.erase(std::remove(holding.begin(), holding.end(), "capabilities"), holding.end());
  RETURN_IF_ERROR(CheckThatHold({"user", "mount", "network", "pid", "ipc", "uts", "cgroup",
                                 "capabilities", "no-new-privileges", "seccomp"},
                                holding));
  return holding;
}

// With the files that any program opens.
absl::Status EnterRules(LandlockRules rules) {
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full"}) rules.writes.push_back(path);
  for (const char* path : {"/proc", "/dev/random", "/dev/urandom"}) rules.reads.push_back(path);
  if (const std::string lack = MissingInLandlock(LandlockVersion()); !lack.empty())
    return absl::UnavailableError(lack);
  return EnterLandlock(rules);
}

absl::StatusOr<std::vector<std::string>> EnterWeak(const Sandbox& sandbox, const CellView& view) {
  RETURN_IF_ERROR(DropAllCapabilities(::geteuid(), ::getegid()));
  LandlockRules rules = {sandbox.shared, {view.dir / "work", view.dir / "tensors"}};
  for (fs::path& path : FindPciDevices()) rules.reads.push_back(std::move(path));
  rules.reads.insert(rules.reads.end(), view.reads.begin(), view.reads.end());
  RETURN_IF_ERROR(EnterRules(std::move(rules)));
  RETURN_IF_ERROR(InstallSeccompFilter(Filtered::kCellWithoutNamespaces));
  std::vector<std::string> holding;
  // The root folder is not among the paths.
  const Descriptor root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid() && errno == EACCES) holding.push_back("landlock");
  CheckRights(OwnStatus(), holding);
  RETURN_IF_ERROR(
      CheckThatHold({"landlock", "capabilities", "no-new-privileges", "seccomp"}, holding));
  return holding;
}

}  // namespace

absl::Status BringLoopbackUp() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return SystemError("cannot bring the loopback up");
  return absl::OkStatus();
}

absl::Status EnterWeakSandbox(const std::vector<fs::path>& reads,
                              const std::vector<fs::path>& writes) {
  RETURN_IF_ERROR(DropAllCapabilities(::geteuid(), ::getegid()));
  RETURN_IF_ERROR(EnterRules({reads, writes}));
  return InstallSeccompFilter(Filtered::kWithoutSockets);
}

Json ToJson(const Sandbox& sandbox) {
  Json shared = Json::array();
  for (const fs::path& path : sandbox.shared) shared.push_back(path.string());
  Json links = Json::object();
  for (const auto& [path, target] : sandbox.links) links[path.string()] = target;
  return {{"level", std::string(Name(sandbox.level))}, {"shared", shared}, {"links", links}};
}

absl::StatusOr<Sandbox> SandboxFromJson(const Json& json) {
  ObjectReader reader(json, "sandbox");
  Sandbox sandbox;
  const std::optional<SandboxLevel> level = SandboxLevelFromName(reader.String("level"));
  for (const std::string& path : reader.Strings("shared")) sandbox.shared.emplace_back(path);
  if (const Json* links = reader.Child("links")) {
    for (const auto& [path, target] : links->items())
      sandbox.links.emplace_back(path, target.get<std::string>());
  }
  RETURN_IF_ERROR(reader.Finish());
  if (!level) return absl::InvalidArgumentError("sandbox: $.level is unknown");
  sandbox.level = *level;
  return sandbox;
}

absl::StatusOr<std::vector<std::string>> EnterSandbox(const Sandbox& sandbox,
                                                      const CellView& view) {
  switch (sandbox.level) {
    case SandboxLevel::kFull:
      return EnterFull(sandbox, view);
    case SandboxLevel::kWeak:
      return EnterWeak(sandbox, view);
    case SandboxLevel::kOff:
      break;
  }
  return std::vector<std::string>();
}

absl::StatusOr<std::vector<std::string>> TrySandbox(const Sandbox& sandbox, uid_t user) {
  std::optional<PidNamespace> space;
  if (sandbox.HasNamespaces()) {
    ASSIGN_OR_RETURN(PidNamespace created, PidNamespace::Create());
    space.emplace(std::move(created));
    RETURN_IF_ERROR(space->Enter());
  }
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  const pid_t child = ::fork();
  const int error = errno;
  if (child == 0) {
    const auto held = EnterSandbox(sandbox, {.dir = "/nowhere", .user = user});
    const Json answer =
        held.ok() ? Json{{"held", *held}} : Json{{"error", std::string(held.status().message())}};
    WriteAll(pipe.write.get(), ToLine(answer));
    ::_exit(0);
  }
  if (space) RETURN_IF_ERROR(PidNamespace::Leave());
  errno = error;
  if (child < 0) return SystemError("cannot fork");
  pipe.write.Close();
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(pipe.read.get(), buffer, sizeof buffer)) != 0;) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("held"))
    return answer["held"].get<std::vector<std::string>>();
  return absl::UnavailableError(answer.is_object() && answer.contains("error")
                                    ? answer["error"].get<std::string>()
                                    : "the process that tried the sandbox died");
}

}  // namespace bkm
