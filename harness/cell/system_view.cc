// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/system_view.h"

#include <algorithm>
#include <fstream>
#include <map>
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

// The shared libraries that are mapped into this process.
std::set<fs::path> LoadedLibraries() {
  std::set<fs::path> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const fs::path file = line.substr(at);
    if (absl::StrContains(file.filename().string(), ".so")) files.insert(file);
  }
  return files;
}

// Collects paths that are not among the system's, with the links that lead to them.
class EnvironmentFinder {
 public:
  // A path that is missing is left out.
  void Add(fs::path path) {
    constexpr int kMostLinks = 40;  // as the kernel
    std::error_code error;
    for (int i = 0; i < kMostLinks && !IsOfSystem(path); ++i) {
      const fs::path target = fs::read_symlink(path, error);
      if (error) {
        if (Exists(path)) reads_.insert(path);
        return;
      }
      links_.emplace(path, target.string());
      path = (path.parent_path() / target).lexically_normal();
    }
  }

  // A library under all names that its folder has for it.
  void AddLibrary(const fs::path& file) {
    if (IsOfSystem(file)) return;
    Add(file);
    std::error_code error;
    for (const fs::path& path : Entries(file.parent_path())) {
      if (fs::is_symlink(path, error) && fs::equivalent(path, file, error)) Add(path);
    }
  }

  void AddPrefix(const fs::path& prefix) {
    if (Exists(prefix / "conda-meta")) {
      for (const char* name : {"bin", "lib", "lib64", "include", "libexec", "share", "ssl",
                               "compiler_compat", "x86_64-conda-linux-gnu"})
        Add(prefix / name);
      return;
    }
    Add(prefix / "pyvenv.cfg");
    AddEntries(prefix / "bin", IsOfPython);
    AddEntries(prefix / "include", IsOfPython);
    for (const char* name : {"lib", "lib64"}) {
      AddEntries(prefix / name,
                 [](const std::string& entry) { return IsOfPython(entry) || IsLibrary(entry); });
      // Debian's interpreters, where they lie elsewhere.
      AddEntries(prefix / name / "x86_64-linux-gnu", IsOfLibpython);
    }
  }

  SystemView Take() const {
    SystemView view;
    view.reads.assign(reads_.begin(), reads_.end());
    view.links.assign(links_.begin(), links_.end());
    return view;
  }

 private:
  // "python", "python3.11", "python3.13t".
  static bool IsOfPython(absl::string_view entry) {
    return absl::ConsumePrefix(&entry, "python") &&
           entry.find_first_not_of("0123456789.dt") == entry.npos;
  }
  // "libfoo.so", "libfoo.so.1.2".
  static bool IsLibrary(absl::string_view entry) {
    const size_t at = entry.rfind(".so");
    return at != entry.npos && entry.find_first_not_of("0123456789.", at + 3) == entry.npos;
  }
  static bool IsOfLibpython(const std::string& entry) {
    return absl::StartsWith(entry, "libpython");
  }
  static bool IsOfSystem(const fs::path& path) {
    return std::any_of(std::begin(kPrograms), std::end(kPrograms),
                       [&](const char* folder) { return IsAtOrBelow(path, folder); });
  }
  static std::vector<fs::path> Entries(const fs::path& folder) {
    std::vector<fs::path> entries;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
    return entries;
  }
  template <typename Wanted>
  void AddEntries(fs::path folder, Wanted wanted) {
    std::error_code error;
    if (fs::is_symlink(folder, error)) {  // "lib64 -> lib"
      links_.emplace(folder, fs::read_symlink(folder, error).string());
      folder = fs::canonical(folder, error);
    }
    if (IsOfSystem(folder)) return;
    for (const fs::path& path : Entries(folder)) {
      if (wanted(path.filename().string())) Add(path);
    }
  }

  std::set<fs::path> reads_;
  std::map<fs::path, std::string> links_;
};

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

std::vector<fs::path> FindPciDevices() {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const char* path : {"/sys/bus/pci", "/sys/class/pci_bus"}) {
    if (Exists(path)) paths.push_back(path);
  }
  for (const auto& entry : fs::directory_iterator("/sys/devices", error)) {
    if (absl::StartsWith(entry.path().filename().string(), "pci")) paths.push_back(entry.path());
  }
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
  if (several) {
    for (const fs::path& path : FindPciDevices()) view.reads.push_back(path);
  }
  return view;
}

SystemView FindEnvironmentView(const fs::path& python) {
  EnvironmentFinder finder;
  std::error_code error;
  const fs::path prefix = python.parent_path().parent_path();
  const fs::path real = fs::canonical(python, error);
  std::set<fs::path> prefixes;
  for (const fs::path& path :
       {prefix, BaseOfEnvironment(prefix), real.parent_path().parent_path()}) {
    for (const fs::path& spelling : Spellings(path)) prefixes.insert(spelling);
  }
  for (const fs::path& one : prefixes) finder.AddPrefix(one);
  finder.Add(python);
  for (const fs::path& file : LoadedLibraries()) finder.AddLibrary(file);
  return finder.Take();
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
