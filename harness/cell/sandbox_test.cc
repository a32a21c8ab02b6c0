// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Hostile cells in a real worker: what each attempt to leave the sandbox answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/embedded_python.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/cell/worker_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A unix socket that somebody listens on.
Descriptor Listen(const std::string& name) {
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX};
  std::memcpy(address.sun_path, name.data(), name.size());
  const socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0) << name;
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  return listener;
}

// What lies outside a cell, within reach of the user who runs bkm.
class Outside {
 public:
  explicit Outside(const WorkerUnderTest& worker)
      : folder_(*CreateTempDirectory("/tmp", "bkm-outside-")),
        other_(worker.folder() / "cells/other/work"),
        path_(Listen(folder_ / "socket")),
        abstract_(Listen(std::string(1, '\0') + Name())),
        server_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(server_.get(), name, size), 0);
    EXPECT_EQ(::listen(server_.get(), 1), 0);
    EXPECT_EQ(::getsockname(server_.get(), name, &size), 0);
    port_ = ntohs(address.sin_port);
    EXPECT_TRUE(WriteFile(folder_ / "secret/key", "secret").ok());
    fs::permissions(folder_, fs::perms::all);
    EXPECT_TRUE(CreateDirectories(other_).ok());
  }
  ~Outside() { RemoveTree(folder_).IgnoreError(); }

  Json Describe() const {
    return {{"secret", folder_ / "secret/key"},
            {"socket", folder_ / "socket"},
            {"abstract", Name()},
            {"port", port_},
            {"cell", other_}};
  }

 private:
  std::string Name() const { return folder_.filename(); }
  fs::path folder_;
  fs::path other_;
  Descriptor path_;
  Descriptor abstract_;
  Descriptor server_;
  int port_ = 0;
};

Json Attempt(WorkerUnderTest& worker) {
  const Outside outside(worker);
  Json request = worker.Request("attempts");
  request["outside"] = outside.Describe();
  request["limits"].erase("memory_mib");
  return worker.RunRequest(request);
}

using Outcomes = std::map<std::string, std::string>;

// The outcomes that are none of `expected`.
Outcomes Unexpected(const Json& attempts,
                    const std::map<std::string, std::set<std::string>>& expected,
                    const std::string& otherwise) {
  Outcomes unexpected;
  for (const auto& [name, outcome] : attempts.items()) {
    const auto one = expected.find(name);
    const bool fits = one == expected.end() ? outcome == otherwise
                                            : one->second.count(outcome.get<std::string>()) > 0;
    if (!fits) unexpected[name] = outcome.get<std::string>();
  }
  return unexpected;
}

TEST(SandboxTest, NoAttemptToLeaveTheFullSandboxSucceeds) {
  WorkerUnderTest worker;
  const Json observation = Attempt(worker);

  ASSERT_EQ(observation["ending"], Json({{"kind", "completed"}})) << ToText(observation);
  EXPECT_GE(observation["attempts"].size(), 70u);
  EXPECT_EQ(Unexpected(observation["attempts"],
                       {{"read a secret", {"ENOENT"}},
                        {"list the secret's folder", {"ENOENT"}},
                        {"connect to a socket of the machine", {"ENOENT"}},
                        {"connect to an abstract socket of the machine", {"ECONNREFUSED"}},
                        {"read another cell's folder", {"ENOENT"}},
                        {"read the init's environment", {"EACCES"}},
                        {"read the init's memory", {"EACCES"}},
                        {"enter the init's root", {"EACCES"}},
                        // It has none. Without root it has the cell's user.
                        {"list the init's descriptors", {"EACCES", "OK"}},
                        {"signal everyone", {"ESRCH"}},
                        {"become root", {"EINVAL"}},
                        {"become another group", {"EINVAL"}},
                        {"write core_pattern", {"EACCES", "EROFS"}},
                        {"write a sysctl", {"EACCES", "EROFS"}},
                        {"write sysrq-trigger", {"EACCES", "EROFS", "ENOENT"}},
                        {"write oom_score_adj", {"EROFS"}},
                        {"write to the root", {"EROFS"}},
                        {"write to the cell's folder", {"EACCES", "EROFS"}},
                        {"write to the tree", {"EROFS"}},
                        {"write to the probe", {"EROFS"}},
                        {"write to the environment", {"EROFS"}},
                        {"connect to a server of the machine", {"ECONNREFUSED"}},
                        {"preallocate beyond the end", {"ENOTSUP", "EOPNOTSUPP"}},
                        {"set an attribute", {"ENOTSUP", "EOPNOTSUPP"}},
                        {"remove an attribute", {"ENOTSUP", "EOPNOTSUPP"}},
                        {"io_setup", {"ENOSYS"}},
                        {"limit another process", {"EPERM", "ESRCH"}},
                        {"shmget", {"ENOSYS"}},
                        {"semget", {"ENOSYS"}},
                        {"msgget", {"ENOSYS"}},
                        {"mq_open", {"ENOSYS"}},
                        {"memfd_create", {"ENOSYS"}},
                        {"memfd_secret", {"ENOSYS"}},
                        {"watch files", {"EMFILE"}},
                        {"openat2", {"ENOSYS"}},
                        {"clone3", {"ENOSYS"}},
                        {"a call of the future", {"ENOSYS"}}},
                       "EPERM"),
            Outcomes());
}

TEST(SandboxTest, ACellSeesAMinimalMachineAndNothingOfTheUser) {
  WorkerUnderTest worker;
  const Json seen = worker.Run("reports_machine")["surroundings"];

  for (const char* name : {"boot", "home", "media", "mnt", "opt", "run", "srv", "var"})
    EXPECT_THAT(seen["root"], Not(Contains(Json(name))));
  EXPECT_EQ(seen["dev"], Json::parse(R"(["fd", "full", "null", "random", "shm", "stderr", "stdin",
                                          "stdout", "urandom", "zero"])"));
  EXPECT_THAT(seen["etc"], Not(Contains(Json("shadow"))));
  EXPECT_NE(seen["uid"], 0);
  EXPECT_EQ(seen["status"], Json::parse(R"({
    "CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
    "CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1",
    "Seccomp": "2"})"));
  EXPECT_EQ(seen["processes"].size(), 2u) << "the init and the cell";
  EXPECT_EQ(seen["host"], "localhost");
  EXPECT_EQ(seen["user"], "bkm");
  std::set<std::string> environment = {"GLOO_SOCKET_IFNAME",
                                       "HF_DATASETS_OFFLINE",
                                       "HF_HUB_DISABLE_TELEMETRY",
                                       "HF_HUB_OFFLINE",
                                       "HOME",
                                       "LANG",
                                       "MALLOC_ARENA_MAX",
                                       "MALLOC_MMAP_THRESHOLD_",
                                       "MALLOC_TOP_PAD_",
                                       "MALLOC_TRIM_THRESHOLD_",
                                       "OPENBLAS_NUM_THREADS",
                                       "PATH",
                                       "PYTHONDONTWRITEBYTECODE",
                                       "PYTHONHASHSEED",
                                       "TMPDIR",
                                       "TOKENIZERS_PARALLELISM",
                                       "TRANSFORMERS_OFFLINE",
                                       "WANDB_MODE"};
  if (!WorkerUnderTest::IsAlone()) environment.insert("LD_PRELOAD");
  EXPECT_EQ(seen["environment"], Json(environment)) << "what the worker was started with";
}

TEST(SandboxTest, WhatTrainersNeedWorks) {
  WorkerUnderTest worker;
  Json request = worker.Request("uses_what_it_may");
  request["limits"].erase("memory_mib");
  const Json observation = worker.RunRequest(request);

  ASSERT_EQ(observation["ending"], Json({{"kind", "completed"}})) << ToText(observation);
  Json found = observation["found"];
  found.erase("processors");
  EXPECT_EQ(found, Json::parse(R"({
    "compiled": 42, "thread": true, "child": 7, "interfaces": ["lo"], "address": "127.0.0.1",
    "pair": "x", "mode": true, "cpuinfo": "processor", "meminfo": "MemTotal", "cpus": true})"));
}

ProcessResult RunProgram(std::vector<std::string> arguments) {
  absl::StatusOr<ProcessResult> result = RunCommand({.argv = std::move(arguments)});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ProcessResult();
}

struct Prefix {
  std::string python;  // below the folder
  std::vector<std::string> kept_out, shown;
};

// Makes the folder of a user, with an interpreter in it, and tells what a cell opens of it.
Json OpenedIn(const fs::path& folder, const Prefix& prefix, const std::string& level) {
  WorkerUnderTest worker(1, {"--sandbox", level}, folder / prefix.python);
  if (worker.ready()["type"] == "fatal") return worker.ready()["message"];
  Json request = worker.Request("opens_files");
  request["files"] = Json::array();
  for (const auto* names : {&prefix.kept_out, &prefix.shown}) {
    for (const std::string& name : *names) request["files"].push_back(folder / name);
  }
  return worker.RunRequest(request)["opened"];
}

TEST(SandboxTest, OfAnInterpretersPrefixACellSeesOnlyWhatTheInterpreterNeeds) {
  const fs::path home = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "home");
  for (const char* secret :
       {".ssh/id_ed25519", "bin/backup.sh", "bin/python_notes", "lib/notes.txt", "lib/key.sources",
        "lib/python-keys/a", "project/.env", "project/.git/config", "project/bin/deploy",
        "project/lib/key.pem"})
    ASSERT_TRUE(WriteFile(home / secret, "secret").ok());
  const std::string python = WorkerUnderTest::Arguments("serve")[3];
  fs::create_symlink(python, home / "bin/python3");
  ASSERT_EQ(RunProgram({python, "-m", "venv", "--without-pip", home / "project"}).exit_code, 0);
  const std::string site =
      absl::StrCat("project/lib/python", EmbeddedPythonVersion(), "/site-packages/a.py");
  ASSERT_TRUE(WriteFile(home / site, "").ok());
  const Prefix prefixes[] = {{"bin/python3",
                              {".ssh/id_ed25519", "bin/backup.sh", "bin/python_notes",
                               "lib/notes.txt", "lib/key.sources", "lib/python-keys/a"},
                              {"bin/python3"}},
                             {"project/bin/python3",
                              {"project/.env", "project/.git/config", "project/bin/deploy",
                               "project/lib/key.pem", ".ssh/id_ed25519"},
                              {"project/bin/python3", "project/pyvenv.cfg", site}}};
  for (const std::string level : {"full", "weak"}) {
    for (const Prefix& prefix : prefixes) {
      const Json opened = OpenedIn(home, prefix, level);
      if (opened.is_string() && level == "weak") continue;  // this machine does not offer it
      for (const std::string& name : prefix.kept_out)
        EXPECT_EQ(opened[home / name], level == "full" ? "ENOENT" : "EACCES") << level << name;
      for (const std::string& name : prefix.shown)
        EXPECT_EQ(opened[home / name], "OK") << level << name;
    }
  }
}

// On a machine that seems to have a card: its nodes lead to /dev/null.
TEST(SandboxTest, OnlyACellThatAsksForAGpuReachesItsDevices) {
  if (::geteuid() != 0) GTEST_SKIP() << "making devices needs root";
  constexpr const char* kMachine = R"(set -e
    mount -t tmpfs none /mnt
    for one in null zero full random urandom fuse; do cp -a /dev/$one /mnt || true; done
    mkdir /mnt/shm /mnt/nvidia-caps
    for one in nvidia0 nvidiactl nvidia-modeset nvidia-caps/nvidia-cap2; do
      mknod -m 666 /mnt/$one c 1 3
    done
    mount --move /mnt /dev
    exec "$@")";
  WorkerUnderTest worker;
  const auto seen = [&](const char* device) {
    Json request = worker.Request("sees_devices");
    request["probe"]["device"] = device;
    const fs::path file = worker.folder() / "request.json";
    EXPECT_TRUE(WriteFile(file, ToText(request)).ok());
    std::vector<std::string> command = {"unshare", "--mount", "sh", "-c", kMachine, "sh"};
    for (const std::string& word : WorkerUnderTest::Arguments("once")) command.push_back(word);
    command.insert(command.end(), {"--request", file});
    const absl::StatusOr<ProcessResult> result = RunCommand({.argv = std::move(command)});
    if (!result.ok()) return Json(std::string(result.status().message()));
    const absl::StatusOr<Json> finished = ParseJson(result->out, "once");
    return finished.ok() ? (*finished)["observation"]["devices"] : Json(result->err);
  };
  EXPECT_EQ(seen("cuda"), Json({{"/dev/nvidia0", "OK"},
                                {"/dev/nvidiactl", "OK"},
                                {"/dev/nvidia-caps/nvidia-cap2", "OK"},
                                {"/dev/nvidia-modeset", "ENOENT"},
                                {"/dev/null", "OK"},
                                {"/proc/self/comm", "OK"},
                                {"/proc/sys", "read-only"}}));
  EXPECT_EQ(seen("cpu"), Json({{"/dev/nvidia0", "ENOENT"},
                               {"/dev/nvidiactl", "ENOENT"},
                               {"/dev/nvidia-caps/nvidia-cap2", "ENOENT"},
                               {"/dev/nvidia-modeset", "ENOENT"},
                               {"/dev/null", "OK"},
                               {"/proc/self/comm", "EROFS"},
                               {"/proc/sys", "read-only"}}));
}

TEST(SandboxTest, FoldersThatAPreloadedPackageKeepsOpenAreNoWayOut) {
  const fs::path list = fs::path(std::getenv("TEST_TMPDIR")) / "preload-folders";
  ASSERT_TRUE(WriteFile(list, "keeps_a_folder_open\n").ok());
  WorkerUnderTest worker(1, {"--preload", list});
  ASSERT_EQ(worker.ready()["preload_errors"], Json::object());

  for (const auto& [name, outcome] : Attempt(worker)["attempts"].items())
    EXPECT_FALSE(absl::StartsWith(name, "leave by descriptor")) << name << ": " << outcome;
}

TEST(SandboxTest, TheWeakSandboxShowsOnlyTheSamePathsAndHasNoPrivileges) {
  WorkerUnderTest worker(1, {"--sandbox", "weak"});
  if (worker.ready()["type"] == "fatal")
    GTEST_SKIP() << worker.ready()["message"].get<std::string>();
  EXPECT_EQ(worker.ready()["sandbox"]["level"], "weak");
  EXPECT_EQ(worker.ready()["sandbox"]["protections"],
            Json({"landlock", "capabilities", "no-new-privileges", "seccomp"}));
  const Json observation = Attempt(worker);

  ASSERT_EQ(observation["ending"], Json({{"kind", "completed"}})) << ToText(observation);
  const Json& attempts = observation["attempts"];
  for (const char* name :
       {"read a secret", "list the secret's folder", "read another cell's folder",
        "write to the root", "write to the cell's folder", "write to the tree",
        "write to the probe", "write to the environment", "write core_pattern",
        "enter the init's root"})
    EXPECT_THAT(attempts[name].get<std::string>(), AnyOf("EACCES", "EPERM")) << name;
  for (const char* name :
       {"connect to a socket of the machine", "set the user's bit", "mount",
        "connect to an abstract socket of the machine", "vsock", "raw socket", "ptrace", "keyctl",
        "new user namespace", "make a device", "pair of vsock", "pair of tipc",
        "create an unnamed file with the user's bit"})
    EXPECT_THAT(attempts[name].get<std::string>(), AnyOf("EACCES", "EPERM")) << name;
  EXPECT_EQ(attempts["connect to a server of the machine"], "EACCES");
  EXPECT_EQ(attempts["connect to it by fast open"], "EPERM");
  EXPECT_EQ(attempts["limit another process"], "EPERM");
  for (const char* name : {"take a lease", "mark a file"}) EXPECT_EQ(attempts[name], "EPERM");
  EXPECT_EQ(attempts["io_setup"], "ENOSYS");
  for (const char* name : {"preallocate beyond the end", "set an attribute", "remove an attribute"})
    EXPECT_THAT(attempts[name].get<std::string>(), AnyOf("ENOTSUP", "EOPNOTSUPP")) << name;
  for (const char* name : {"shmget", "semget", "msgget", "mq_open", "memfd_create", "memfd_secret"})
    EXPECT_EQ(attempts[name], "ENOSYS") << name;
  EXPECT_EQ(attempts["watch files"], "EMFILE");
  EXPECT_EQ(worker.Run("completes")["ending"], Json({{"kind", "completed"}}));
}

TEST(SandboxTest, TheWeakSandboxLeavesAttributesAndSharedMemoryOfOthersAlone) {
  WorkerUnderTest worker(1, {"--sandbox", "weak"});
  if (worker.ready()["type"] == "fatal")
    GTEST_SKIP() << worker.ready()["message"].get<std::string>();
  const fs::path tree = worker.folder() / "tree/engine.py";
  const fs::path shared = absl::StrCat("/dev/shm/bkm-test-", ::getpid());
  ASSERT_TRUE(WriteFile(shared, "theirs").ok());
  fs::permissions(shared, fs::perms::all);
  // Of the user who runs cells, as without root.
  ASSERT_EQ(::chown(tree.c_str(), 65532, 65532), ::geteuid() == 0 ? 0 : -1);
  const fs::perms before = fs::status(tree).permissions();
  const auto written = fs::last_write_time(tree);

  Json request = worker.Request("changes_attributes");
  request["files"] = {tree, shared};
  const Json observation = worker.RunRequest(request);

  EXPECT_EQ(observation["ending"], Json({{"kind", "completed"}}));
  EXPECT_EQ(observation["own"], "as it was") << "success is pretended";
  EXPECT_EQ(fs::status(tree).permissions(), before);
  EXPECT_EQ(fs::last_write_time(tree), written);
  EXPECT_EQ(observation["opened"][shared], "EACCES");
  fs::remove(shared);
}

TEST(SandboxTest, RanksNeedANetworkOfTheirOwn) {
  WorkerUnderTest worker(1, {"--sandbox", "weak"});
  if (worker.ready()["type"] == "fatal")
    GTEST_SKIP() << worker.ready()["message"].get<std::string>();
  Json request = worker.Request("completes");
  request["probe"]["ranks"] = 2;
  const Json ending = worker.RunRequest(request)["ending"];
  EXPECT_EQ(ending["kind"], "fork-failed");
  EXPECT_THAT(ending["message"].get<std::string>(), HasSubstr("use full or off"));
}

TEST(SandboxTest, WithoutSandboxACellStillRuns) {
  WorkerUnderTest worker(1, {"--sandbox", "off"});

  EXPECT_EQ(worker.ready()["sandbox"]["level"], "off");
  EXPECT_EQ(worker.ready()["sandbox"]["protections"], Json::array());
  EXPECT_EQ(worker.Run("completes")["ending"], Json({{"kind", "completed"}}));
}

TEST(SandboxTest, SandboxLevelsAreDescribedInOneLine) {
  const ProcessResult result = RunProgram({WorkerUnderTest::Binary(), "sandbox-levels"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json levels = Json::parse(result.out);
  EXPECT_EQ(levels["full"], Json({{"available", true}, {"missing", Json::array()}}));
  EXPECT_EQ(levels["off"], Json({{"available", true}, {"missing", Json::array()}}));
  EXPECT_TRUE(levels["weak"]["available"].is_boolean());
}

// `arguments` on a machine that allows no further user namespaces.
ProcessResult RunWithoutNamespaces(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {
      "unshare", "--user", "--map-root-user",
      "sh",      "-c",     "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"",
      "sh"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunProgram(all);
}

// `arguments` on a kernel without Landlock: a filter of system calls answers that there is none.
ProcessResult RunWithoutLandlock(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {WorkerUnderTest::Arguments("serve")[3], "-c",
                                  R"(import ctypes, os, struct, sys
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
program = Program(len(rules), ctypes.addressof(code))
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
)"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunProgram(all);
}

TEST(SandboxTest, WithoutLandlockTheWeakSandboxIsRefusedInOneSentence) {
  std::vector<std::string> weak = WorkerUnderTest::Arguments("serve");
  weak.insert(weak.end(), {"--sandbox", "weak"});
  const ProcessResult result = RunWithoutLandlock(weak);

  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_EQ(Json::parse(result.out, nullptr, false)["message"],
            "this machine does not offer the sandbox level 'weak' (landlock: this kernel does not "
            "offer Landlock; it needs Linux 6.12 with landlock in the kernel parameter lsm): allow "
            "it, or give --sandbox off");
  const Json levels =
      Json::parse(RunWithoutLandlock({WorkerUnderTest::Binary(), "sandbox-levels"}).out);
  EXPECT_EQ(levels["weak"]["available"], false);
}

TEST(SandboxTest, APathThatOnlyRootMayReadIsNamedWithWhatToDo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root runs cells as another user";
  const fs::path folder = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "private");
  fs::permissions(folder, fs::perms(0700));
  std::vector<std::string> arguments = WorkerUnderTest::Arguments("serve");
  arguments.insert(arguments.end(), {"--read", folder});
  const ProcessResult result = RunProgram(arguments);

  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_EQ(Json::parse(result.out, nullptr, false)["message"],
            "the user that cells run as may not read " + folder.string() +
                ", as after umask 077: chmod -R go+rX " + folder.string());
}

TEST(SandboxTest, AMissingProtectionIsNamedAndEndsTheWorker) {
  const ProcessResult result = RunWithoutNamespaces(WorkerUnderTest::Arguments("serve"));

  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  const Json fatal = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(fatal.is_object()) << result.out;
  EXPECT_EQ(fatal["type"], "fatal");
  EXPECT_THAT(fatal["message"].get<std::string>(),
              testing::AllOf(HasSubstr("does not offer the sandbox level 'full' (user: "),
                             HasSubstr("give --sandbox weak or --sandbox off")));

  const ProcessResult levels = RunWithoutNamespaces({WorkerUnderTest::Binary(), "sandbox-levels"});
  const Json full = Json::parse(levels.out)["full"];
  EXPECT_EQ(full["available"], false);
  EXPECT_THAT(full["missing"].dump(), HasSubstr("user: "));
}

class ConfineTest : public ::testing::TestWithParam<const char*> {
 protected:
  ConfineTest() : folder_(*CreateTempDirectory(std::getenv("TEST_TMPDIR"), "confine")) {
    EXPECT_TRUE(WriteFile(folder_ / "in/file", "kept\n").ok());
    EXPECT_TRUE(WriteFile(folder_ / "secret", "secret\n").ok());
    EXPECT_TRUE(CreateDirectories(folder_ / "out").ok());
  }
  ~ConfineTest() override { RemoveTree(folder_).IgnoreError(); }

  ProcessResult Confine(const std::string& script, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {WorkerUnderTest::Binary(),
                                          "confine",
                                          "--sandbox",
                                          GetParam(),
                                          "--read",
                                          folder_ / "in",
                                          "--write",
                                          folder_ / "out",
                                          "--env",
                                          "GIVEN=yes"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
    return RunProgram(arguments);
  }

  fs::path folder_;
};

TEST_P(ConfineTest, TheProgramReadsAndWritesWhatItIsGivenAndNothingElse) {
  const ProcessResult result =
      Confine("cat ../in/file; echo made > made; echo $GIVEN$HOME_OF_USER; cat ../secret; exit 7");

  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_EQ(result.out, "kept\nyes\n");
  EXPECT_THAT(result.err, HasSubstr("../secret"));
  EXPECT_EQ(*ReadFile(folder_ / "out/made"), "made\n");
  EXPECT_NE(Confine("echo x > ../in/file").exit_code, 0);
  EXPECT_EQ(*ReadFile(folder_ / "in/file"), "kept\n");
}

TEST_P(ConfineTest, TheProgramHasNoNetworkAndATimeLimit) {
  const ProcessResult network = Confine(
      "exec python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), timeout=5)'");
  EXPECT_THAT(network.err,
              AnyOf(HasSubstr("Network is unreachable"), HasSubstr("Operation not permitted")));
  EXPECT_EQ(Confine("sleep 60", {"--timeout", "0.5"}).exit_code, 124);
  EXPECT_EQ(Confine("kill -9 $$").exit_code, 137);
}

TEST_P(ConfineTest, APathThatIsMissingIsAnError) {
  const ProcessResult result = Confine("true", {"--read", "/no/such/path"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "cell_worker: there is no /no/such/path to show\n");
}

INSTANTIATE_TEST_SUITE_P(Levels, ConfineTest, testing::Values("full", "weak"));

}  // namespace
}  // namespace bkm
