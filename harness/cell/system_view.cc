// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/system_view.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/embedded_python.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Folders of programs and libraries. On most systems all but /usr are links into it.
constexpr const char* kPrograms[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                     "/lib32", "/lib64", "/libx32"};
// What the dynamic linker, compilers, libc and libcrypto read. Nothing else of /etc: it tells of
// users, hosts and services.
constexpr const char* kEtc[] = {"alternatives", "ld.so.cache",  "ld.so.conf",     "ld.so.conf.d",
                                "localtime",    "locale.alias", "ssl/openssl.cnf"};
// torch and OpenMP choose their kernels by the processor and its memory.
constexpr const char* kHardware[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};
constexpr absl::string_view kNvidia = "0x10de";  // as a PCI vendor
constexpr const char* kReadByCuda[] = {"/sys/module/nvidia/initstate",
                                       "/sys/module/nvidia_uvm/initstate",
                                       "/sys/devices/system/memory/block_size_bytes"};
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                    "/dev/urandom"};

// The folders of shared libraries that are mapped into this process.
std::set<fs::path> FoldersOfLoadedLibraries() {
  std::set<fs::path> folders;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const fs::path file = line.substr(at);
    if (absl::StrContains(file.filename().string(), ".so")) folders.insert(file.parent_path());
  }
  return folders;
}

// Of the nodes that NVIDIA's driver makes in /dev, those that computing needs: the cards, their
// control node, unified memory, and the folder of nodes for parts of a card (MIG). The others are
// for screens, debuggers and fabrics.
bool IsGpuNode(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "nvidia")) return false;
  return name == "ctl" || name == "-uvm" || name == "-caps" ||
         (!name.empty() && std::all_of(name.begin(), name.end(), absl::ascii_isdigit));
}

// Debian's Python reads a file of /etc/python3.N.
void AddPythonSettings(SystemView& view) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/etc", error)) {
    if (absl::StartsWith(entry.path().filename().string(), "python3"))
      view.reads.push_back(entry.path());
  }
}

}  // namespace

std::vector<fs::path> Spellings(const fs::path& path) {
  std::vector<fs::path> result;
  if (!path.is_absolute() || !Exists(path)) return result;
  std::error_code error;
  fs::path named = path.lexically_normal();
  if (!named.has_filename()) named = named.parent_path();  // "/folder/"
  for (const fs::path& spelling : {named, fs::canonical(path, error)}) {
    if (!error && spelling != spelling.root_path() &&
        std::find(result.begin(), result.end(), spelling) == result.end())
      result.push_back(spelling);
  }
  return result;
}

SystemView FindSystemView() {
  SystemView view;
  std::error_code error;
  for (const fs::path path : kPrograms) {
    if (fs::is_symlink(path, error)) {
      view.links.emplace_back(path, fs::read_symlink(path, error).string());
    } else if (Exists(path)) {
      view.reads.push_back(path);
    }
  }
  for (const char* name : kEtc) {
    if (Exists(fs::path("/etc") / name)) view.reads.push_back(fs::path("/etc") / name);
  }
  AddPythonSettings(view);
  for (const char* path : kHardware) {
    if (Exists(path)) view.reads.push_back(path);
  }
  for (const char* path : kDevices) {
    if (Exists(path)) view.devices.push_back(path);
  }
  return view;
}

std::vector<fs::path> SystemPaths() {
  const SystemView view = FindSystemView();
  std::vector<fs::path> paths = view.reads;
  for (const auto& [path, target] : view.links) paths.push_back(path);
  for (const char* path : {"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"})
    paths.push_back(path);
  return paths;
}

SystemView FindGpuView(bool several) {
  SystemView view;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    if (IsGpuNode(entry.path().filename().string())) view.devices.push_back(entry.path());
  }
  if (view.devices.empty()) return view;
  const auto read = [&](const fs::path& path) {
    if (Exists(path)) view.reads.push_back(path);
  };
  for (const char* path : kReadByCuda) read(path);
  for (const auto& entry : fs::directory_iterator("/sys/bus/pci/devices", error)) {
    const auto vendor = ReadFile(entry.path() / "vendor");
    if (vendor.ok() && absl::StripAsciiWhitespace(*vendor) == kNvidia) read(entry.path());
  }
  if (!several) return view;
  for (const char* path : {"/sys/bus/pci", "/sys/class/pci_bus"}) read(path);
  for (const auto& entry : fs::directory_iterator("/sys/devices", error)) {
    if (absl::StartsWith(entry.path().filename().string(), "pci")) read(entry.path());
  }
  return view;
}

std::vector<fs::path> EnvironmentPaths(const fs::path& python) {
  std::error_code error;
  std::set<fs::path> found;
  const fs::path prefix = python.parent_path().parent_path();
  const fs::path real = fs::canonical(python, error);
  for (const fs::path& path :
       {prefix, BaseOfEnvironment(prefix), real.parent_path().parent_path()}) {
    for (const fs::path& spelling : Spellings(path)) found.insert(spelling);
  }
  for (const fs::path& folder : FoldersOfLoadedLibraries()) {
    if (!IsAtOrBelow(folder, "/usr") && !IsAtOrBelow(folder, "/lib") &&
        !IsAtOrBelow(folder, "/lib64"))
      found.insert(folder);
  }
  return {found.begin(), found.end()};
}

std::vector<std::pair<fs::path, std::string>> MadeUpFiles(unsigned first_user, int users) {
  std::string passwd = "root:x:0:0:root:/:/usr/sbin/nologin\n";
  std::string group = "root:x:0:\n";
  for (unsigned user = first_user; user < first_user + static_cast<unsigned>(users); ++user) {
    absl::StrAppend(&passwd, "bkm:x:", user, ":", user, ":bkm:/tmp/.bkm-home:/bin/sh\n");
    absl::StrAppend(&group, "bkm:x:", user, ":\n");
  }
  return {{"/etc/passwd", passwd},
          {"/etc/group", group},
          {"/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
          {"/etc/host.conf", "multi on\n"},
          {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"}};
}

}  // namespace bkm
