// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/tree_view.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/cell/mount_calls.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/system_error.h"
#include "harness/cell/tree_view_files.h"

#define FUSE_USE_VERSION 35
#include <fuse3/fuse_lowlevel.h>

namespace bkm {
namespace {

// The kernel may keep each answer: the tree does not change, and the view ends with the cell.
constexpr double kForever = 365 * 86400;
constexpr absl::string_view kModule = "user.bkm.module.";
// Its content follows from the sources beside it; a commit's own files in it can be looked up.
constexpr absl::string_view kCompiled = "__pycache__";
constexpr size_t kLongestName = 255;

// A mount of the FUSE connection `fuse` that is attached nowhere.
absl::StatusOr<Descriptor> MountOf(int fuse) {
  const Descriptor context(OpenFileSystem("fuse", FSOPEN_CLOEXEC));
  if (!context.valid()) return SystemError("cannot create a FUSE file system");
  const std::vector<std::pair<const char*, std::string>> values = {
      {"source", "bkm-tree"},
      {"fd", absl::StrCat(fuse)},
      {"rootmode", "40000"},
      {"user_id", absl::StrCat(::geteuid())},
      {"group_id", absl::StrCat(::getegid())}};
  for (const auto& [name, value] : values) {
    if (ConfigureFileSystem(context.get(), FSCONFIG_SET_STRING, name, value.c_str()) != 0)
      return SystemError(absl::StrCat("cannot set ", name, " of a FUSE file system"));
  }
  for (const char* flag : {"default_permissions", "allow_other", "ro"}) {
    if (ConfigureFileSystem(context.get(), FSCONFIG_SET_FLAG, flag, nullptr) != 0)
      return SystemError(absl::StrCat("cannot set ", flag, " of a FUSE file system"));
  }
  if (ConfigureFileSystem(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr) != 0)
    return SystemError("cannot create a FUSE file system");
  Descriptor mount = ToPrivate(Descriptor(MountFileSystem(
      context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)));
  if (!mount.valid()) return SystemError("cannot mount a FUSE file system");
  return mount;
}

}  // namespace

Json ToJson(const TreeRecord& record) {
  const auto escaped = [](const std::vector<std::string>& names) {
    Json list = Json::array();
    for (const std::string& name : names) list.push_back(absl::CEscape(name));
    return list;
  };
  return {{"read", escaped(record.read)},
          {"lookups", escaped(record.lookups)},
          {"asked", escaped(record.asked)}};
}

class TreeView::Server {
 public:
  Server(TreeFiles files, const TreeViewLimits& limits)
      : limits_(limits), files_(std::move(files)) {}
  ~Server() { Stop(); }

  absl::Status Start();
  TreeRecord Stop();
  Descriptor mount;

 private:
  using Id = TreeFiles::Id;
  static Server& Of(fuse_req_t request) {
    return *static_cast<Server*>(fuse_req_userdata(request));
  }
  static fuse_lowlevel_ops Operations();

  // What the kernel asks. Every function answers `request` exactly once.
  static void Begin(void* self, fuse_conn_info* connection);
  static void Lookup(fuse_req_t request, fuse_ino_t folder, const char* name);
  static void GetAttributes(fuse_req_t request, fuse_ino_t id, fuse_file_info*);
  static void ReadLink(fuse_req_t request, fuse_ino_t id);
  static void Open(fuse_req_t request, fuse_ino_t, fuse_file_info*);
  static void Read(fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info*);
  static void List(fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info*);
  static void GetExtra(fuse_req_t request, fuse_ino_t id, const char* name, size_t size);
  static void Forget(fuse_req_t request, fuse_ino_t, uint64_t) { fuse_reply_none(request); }

  void Loop();
  // Adds a name to a list of the record, unless the record is full.
  void Note(std::set<std::string>& list, std::string name);
  void DropRecord();
  // An error of this machine: another cell need not see it.
  void Fail(fuse_req_t request, int error);
  void NoteModule(Id folder, const std::string& module, const std::string& forms);

  const TreeViewLimits limits_;
  TreeFiles files_;
  std::string bytes_;
  std::set<std::string> read_, lookups_, asked_;
  std::set<std::string> found_;  // of asked_: what exists
  size_t names_ = 0, name_bytes_ = 0;
  size_t questions_ = 0;
  bool complete_ = true;

  fuse_session* session_ = nullptr;
  Descriptor stop_;
  std::thread thread_;
};

fuse_lowlevel_ops TreeView::Server::Operations() {
  fuse_lowlevel_ops operations = {};
  operations.init = Begin;
  operations.lookup = Lookup;
  operations.forget = Forget;
  operations.getattr = GetAttributes;
  operations.readlink = ReadLink;
  operations.open = Open;
  operations.opendir = Open;
  operations.read = Read;
  operations.readdir = List;
  operations.getxattr = GetExtra;
  return operations;
}

absl::Status TreeView::Server::Start() {
  Descriptor fuse = ToPrivate(Descriptor(::open("/dev/fuse", O_RDWR | O_CLOEXEC)));
  if (!fuse.valid()) return SystemError("cannot open /dev/fuse");
  stop_ = ToPrivate(Descriptor(::eventfd(0, EFD_CLOEXEC)));
  if (!stop_.valid()) return SystemError("cannot create an eventfd");
  ASSIGN_OR_RETURN(mount, MountOf(fuse.get()));
  char program[] = "bkm-tree";
  char* arguments[] = {program, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, arguments);
  const fuse_lowlevel_ops operations = Operations();
  session_ = fuse_session_new(&args, &operations, sizeof operations, this);
  fuse_opt_free_args(&args);
  if (!session_) return absl::UnavailableError("cannot start a FUSE session");
  if (fuse_session_mount(session_, absl::StrCat("/dev/fd/", fuse.get()).c_str()) != 0)
    return absl::UnavailableError("cannot start a FUSE session on /dev/fuse");
  fuse.Release();  // the session closes it
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

TreeRecord TreeView::Server::Stop() {
  mount.Close();
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  // Closes the connection: the kernel ends every request that waits.
  if (session_) fuse_session_destroy(std::exchange(session_, nullptr));
  TreeRecord record{.complete = complete_, .exhausted = questions_ > limits_.most_questions};
  record.read.assign(read_.begin(), read_.end());
  record.lookups.assign(lookups_.begin(), lookups_.end());
  // That a folder exists follows from anything that exists in it.
  std::set<std::string> implied;
  const auto imply = [&](std::string path) {
    for (size_t slash; (slash = path.rfind('/')) != path.npos;) {
      path.resize(slash);
      if (!implied.insert(path).second) return;
    }
  };
  for (const std::string& path : read_) imply(path);
  for (const std::string& path : found_) imply(path);
  for (const std::string& path : asked_) {
    if (!read_.contains(path) && !implied.contains(path)) record.asked.push_back(path);
  }
  return record;
}

void TreeView::Server::Loop() {
  fuse_buf buffer = {};
  while (!fuse_session_exited(session_)) {
    pollfd fds[] = {{fuse_session_fd(session_), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
    if (fds[1].revents) break;
    if (!fds[0].revents) continue;
    const int got = fuse_session_receive_buf(session_, &buffer);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) break;
    if (++questions_ > limits_.most_questions) {
      DropRecord();
      fuse_session_destroy(std::exchange(session_, nullptr));
      break;
    }
    fuse_session_process_buf(session_, &buffer);
  }
  std::free(buffer.mem);
}

void TreeView::Server::Note(std::set<std::string>& list, std::string name) {
  if (!complete_) return;
  const size_t size = name.size();
  if (!list.insert(std::move(name)).second) return;
  name_bytes_ += size;
  if (++names_ > limits_.most_names || name_bytes_ > limits_.most_bytes) DropRecord();
}

void TreeView::Server::DropRecord() {
  complete_ = false;
  for (auto* all : {&read_, &lookups_, &asked_, &found_}) all->clear();
}

void TreeView::Server::Fail(fuse_req_t request, int error) {
  DropRecord();
  fuse_reply_err(request, error == ENOENT ? EIO : error);
}

void TreeView::Server::Begin(void*, fuse_conn_info* connection) {
  // Splicing pays for large writes only, and the kernel must not read names that nobody asked for.
  connection->want &=
      ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                             FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
  connection->want |= connection->capable & FUSE_CAP_CACHE_SYMLINKS;
  connection->max_readahead = 1 << 20;
}

void TreeView::Server::Lookup(fuse_req_t request, fuse_ino_t folder, const char* name) {
  Server& self = Of(request);
  const std::string text = name;
  if (text.size() > kLongestName) {  // in no tree
    fuse_reply_err(request, ENAMETOOLONG);
    return;
  }
  if (!self.files_.Has(folder)) return self.Fail(request, ESTALE);
  Id found = 0;
  if (const int error = self.files_.Find(folder, text, found)) return self.Fail(request, error);
  fuse_entry_param entry = {};
  entry.attr_timeout = entry.entry_timeout = kForever;
  std::string path = JoinPath(self.files_.node(folder).path, text);
  if (found != 0) {
    entry.ino = found;
    entry.attr = self.files_.StatOf(found);
    self.Note(self.found_, path);
  }
  self.Note(self.asked_, std::move(path));
  fuse_reply_entry(request, &entry);
}

void TreeView::Server::GetAttributes(fuse_req_t request, fuse_ino_t id, fuse_file_info*) {
  Server& self = Of(request);
  if (!self.files_.Has(id)) return self.Fail(request, ESTALE);
  const struct stat info = self.files_.StatOf(id);  // its name was looked up: that is recorded
  fuse_reply_attr(request, &info, kForever);
}

void TreeView::Server::ReadLink(fuse_req_t request, fuse_ino_t id) {
  Server& self = Of(request);
  if (!self.files_.Has(id)) return self.Fail(request, ESTALE);
  std::string target;
  if (const int error = self.files_.ReadLink(id, target)) return self.Fail(request, error);
  self.Note(self.read_, self.files_.node(id).path);
  fuse_reply_readlink(request, target.c_str());
}

// Opening shows nothing that the look-up of the name did not show. The kernel takes this answer for
// all files and no longer asks: reading is recorded.
void TreeView::Server::Open(fuse_req_t request, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(request, ENOSYS);
}

void TreeView::Server::Read(fuse_req_t request, fuse_ino_t id, size_t size, off_t offset,
                            fuse_file_info*) {
  Server& self = Of(request);
  if (!self.files_.Has(id)) return self.Fail(request, ESTALE);
  self.Note(self.read_, self.files_.node(id).path);
  constexpr size_t kMost = 1 << 20;
  if (const int error = self.files_.Read(id, offset, std::min(size, kMost), self.bytes_))
    return self.Fail(request, error);
  fuse_reply_buf(request, self.bytes_.data(), self.bytes_.size());
}

void TreeView::Server::List(fuse_req_t request, fuse_ino_t id, size_t size, off_t offset,
                            fuse_file_info*) {
  Server& self = Of(request);
  if (!self.files_.Has(id)) return self.Fail(request, ESTALE);
  if (const int error = self.files_.List(id)) return self.Fail(request, error);
  const TreeFiles::Node& folder = self.files_.node(id);
  self.Note(self.read_, (folder.path.empty() ? "." : folder.path) + "/");
  constexpr size_t kMost = 1 << 16;
  std::string& bytes = self.bytes_;
  bytes.resize(std::min(size, kMost));
  size_t used = 0;
  off_t at = 0;
  // False once the buffer is full. `offset` is the number of entries that the kernel has.
  const auto add = [&](const std::string& name, mode_t kind, ino_t inode) {
    if (at++ < offset) return true;
    struct stat info = {};
    info.st_mode = kind;
    info.st_ino = inode;
    const size_t need = fuse_add_direntry(request, bytes.data() + used, bytes.size() - used,
                                          name.c_str(), &info, at);
    if (used + need > bytes.size()) return false;
    used += need;
    return true;
  };
  bool room = add(".", S_IFDIR, self.files_.StatOf(id).st_ino) &&
              add("..", S_IFDIR, self.files_.StatOf(folder.parent).st_ino);
  for (auto child = folder.children.begin(); room && child != folder.children.end(); ++child) {
    if (child->first == kCompiled) continue;
    const TreeFiles::Kind kind = child->second.first;
    room = add(child->first,
               kind == TreeFiles::Kind::kFolder ? S_IFDIR
               : kind == TreeFiles::Kind::kLink ? S_IFLNK
                                                : S_IFREG,
               InodeOfPath(JoinPath(folder.path, child->first)));
  }
  fuse_reply_buf(request, bytes.data(), used);
}

void TreeView::Server::NoteModule(Id folder, const std::string& module, const std::string& forms) {
  const std::string& path = files_.node(folder).path;
  Note(lookups_, JoinPath(path, module));
  // The kind of what is found counts, too: only the names are in the lookup.
  size_t start = 0;
  for (size_t end; (end = forms.find('\n', start)) != forms.npos; start = end + 1) {
    std::string form = JoinPath(path, absl::StripSuffix(forms.substr(start, end - start), "/"));
    Note(found_, form);
    Note(asked_, std::move(form));
  }
}

void TreeView::Server::GetExtra(fuse_req_t request, fuse_ino_t id, const char* name, size_t size) {
  Server& self = Of(request);
  if (!self.files_.Has(id)) return self.Fail(request, ESTALE);
  absl::string_view module = name;
  if (!absl::ConsumePrefix(&module, kModule) || module.empty() || absl::StrContains(module, "/") ||
      self.files_.node(id).kind != TreeFiles::Kind::kFolder) {
    fuse_reply_err(request, ENODATA);
    return;
  }
  std::string forms;
  const int error = self.files_.Forms(id, std::string(module), forms);
  if (error != 0 && error != EOPNOTSUPP) return self.Fail(request, error);
  self.NoteModule(id, std::string(module), forms);
  if (error != 0) {
    fuse_reply_err(request, error);
  } else if (size == 0) {
    fuse_reply_xattr(request, forms.size());
  } else if (forms.size() > size) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, forms.data(), forms.size());
  }
}

TreeView::TreeView(std::unique_ptr<Server> server) : server_(std::move(server)) {}
TreeView::~TreeView() = default;

absl::StatusOr<std::unique_ptr<TreeView>> TreeView::Serve(const std::filesystem::path& tree,
                                                          const TreeViewLimits& limits) {
  ASSIGN_OR_RETURN(TreeFiles files, TreeFiles::Open(tree));
  auto server = std::make_unique<Server>(std::move(files), limits);
  RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<TreeView>(new TreeView(std::move(server)));
}

Descriptor TreeView::TakeMount() { return std::move(server_->mount); }

TreeRecord TreeView::Stop() { return server_->Stop(); }

}  // namespace bkm
