// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/tree_view.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/cell/mount_calls.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// Starts `program` with the view mounted at `at`, which is its current folder, too. The mount ends
// with the process.
pid_t StartInView(TreeView& view, const fs::path& at, const std::vector<std::string>& program,
                  int out) {
  const Descriptor mount = view.TakeMount();
  std::vector<char*> arguments;
  for (const std::string& argument : program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (::unshare(CLONE_NEWNS) != 0) ::_exit(101);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(102);
  if (MoveMount(mount.get(), "", AT_FDCWD, at.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) ::_exit(103);
  if (::chdir(at.c_str()) != 0) ::_exit(104);
  ::dup2(out, 1);
  ::execvp(arguments[0], arguments.data());
  ::_exit(105);
}

class TreeViewTest : public ::testing::Test {
 protected:
  TreeViewTest()
      : root_(*CreateTempDirectory(::testing::TempDir(), "view-")),
        tree_(root_ / "tree"),
        at_(root_ / "at") {
    fs::create_directories(at_);
    Write("pkg/__init__.py", "");
    Write("pkg/used.py", "value = 1\n");
    Write("pkg/unused.py", "value = 22\n");
    Write("pkg/data/a.txt", "text");
    Write("pkg/bare/x.py", "");
    Write("pkg/__pycache__/used.cpython-311.pyc", "compiled");
    Write("pkg/run.sh", "#!/bin/sh\necho ran\n");
    fs::permissions(tree_ / "pkg/run.sh", fs::perms::owner_all);
    fs::create_symlink("used.py", tree_ / "pkg/link.py");
    fs::create_symlink("/etc/hostname", tree_ / "pkg/leaves");
  }
  ~TreeViewTest() override { RemoveTree(root_).IgnoreError(); }

  void Write(const std::string& path, const std::string& content) {
    ASSERT_TRUE(WriteFile(tree_ / path, content).ok());
  }
  // What a program printed that ran in a view of the tree; sets record_.
  std::string Run(const std::vector<std::string>& program, const TreeViewLimits& limits = {}) {
    absl::StatusOr<std::unique_ptr<TreeView>> view = TreeView::Serve(tree_, limits);
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok()) return "";
    const fs::path out = root_ / "out";
    const Descriptor file(::open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
    const pid_t pid = StartInView(**view, at_, program, file.get());
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    record_ = (*view)->Stop();
    return *ReadFile(out);
  }
  std::string Python(const std::string& script) {
    return Run({"/usr/bin/python3", "-I", "-S", "-c", script});
  }
  // Without the test's PATH, which holds the working folder: looking for a program there asks.
  std::string Shell(const std::string& script) {
    return Run({"/bin/sh", "-c", "PATH=/usr/bin:/bin; " + script});
  }

  const fs::path root_, tree_, at_;
  TreeRecord record_;
};

TEST_F(TreeViewTest, ShowsTheTreeReadOnly) {
  EXPECT_EQ(Shell("cat pkg/used.py pkg/data/a.txt; ./pkg/run.sh; cat pkg/link.py;"
                  "touch pkg/new 2>/dev/null || echo refused;"
                  "cat pkg/missing 2>/dev/null || echo missing"),
            "value = 1\ntextran\nvalue = 1\nrefused\nmissing\n");
  EXPECT_TRUE(record_.complete);
}

TEST_F(TreeViewTest, ReadingIsSeenFromAnyProcessInAnyWay) {
  Shell("cat pkg/used.py");
  EXPECT_THAT(record_.read, ElementsAre("pkg/used.py"));
  EXPECT_THAT(record_.asked, IsEmpty());
  Python(
      "import mmap, os\n"
      "f = os.open('pkg/data/a.txt', os.O_RDONLY)\n"
      "assert mmap.mmap(f, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)[:4] == b'text'");
  EXPECT_THAT(record_.read, ElementsAre("pkg/data/a.txt"));
  Python(
      "import os\n"
      "f = os.open('pkg/used.py', os.O_PATH)\n"
      "assert open(f'/proc/self/fd/{f}').read() == 'value = 1\\n'");
  EXPECT_THAT(record_.read, ElementsAre("pkg/used.py"));
  Python(
      "import ctypes\n"
      "c = ctypes.CDLL(None)\n"
      "b = ctypes.create_string_buffer(99)\n"
      "assert c.read(c.open(b'pkg/unused.py', 0), b, 99) == 11");
  EXPECT_THAT(record_.read, ElementsAre("pkg/unused.py"));
  Python(
      "import os, socket\n"
      "a, b = os.pipe()\n"
      "f = os.open('pkg/used.py', 0)\n"
      "assert os.splice(f, b, 99) == 10");
  EXPECT_THAT(record_.read, ElementsAre("pkg/used.py"));
}

TEST_F(TreeViewTest, AskingIsSeenWhetherOrNotThereIsSomething) {
  Python(
      "import os\n"
      "assert os.stat('pkg/used.py').st_size == 10\n"
      "assert not os.path.exists('pkg/none.py') and not os.path.exists('none/a')\n"
      "assert os.path.isdir('pkg/data')");
  EXPECT_THAT(record_.asked, ElementsAre("none", "pkg/data", "pkg/none.py", "pkg/used.py"));
  EXPECT_THAT(record_.read, IsEmpty());
}

TEST_F(TreeViewTest, OpeningWithoutReadingIsAsking) {
  Python("open('pkg/used.py').close()");
  EXPECT_THAT(record_.asked, ElementsAre("pkg/used.py"));
  EXPECT_THAT(record_.read, IsEmpty());
}

TEST_F(TreeViewTest, ListingAndLinksAreRead) {
  EXPECT_EQ(Python("import os; print(os.listdir('pkg'), os.listdir('.'))"),
            "['__init__.py', 'bare', 'data', 'leaves', 'link.py', 'run.sh', 'unused.py', "
            "'used.py'] ['pkg']\n");
  EXPECT_THAT(record_.read, ElementsAre("./", "pkg/"));
  EXPECT_EQ(Python("import os; print(os.readlink('pkg/leaves'))"), "/etc/hostname\n");
  EXPECT_THAT(record_.read, ElementsAre("pkg/leaves"));
  Python("open('pkg/link.py').read()");
  EXPECT_THAT(record_.read, ElementsAre("pkg/link.py", "pkg/used.py"));
}

TEST_F(TreeViewTest, NothingButTheContentShows) {
  const std::string script =
      "import os\n"
      "for p in '.', 'pkg', 'pkg/used.py', 'pkg/run.sh', 'pkg/link.py', 'pkg/data':\n"
      "  s = os.lstat(p); print(p, s.st_ino, oct(s.st_mode), s.st_nlink, s.st_size, s.st_mtime,\n"
      "    s.st_atime, s.st_ctime, s.st_blocks, s.st_uid)\n"
      "print([(e.name, e.inode(), e.is_dir()) for e in os.scandir('pkg/data')])";
  const std::string before = Python(script);
  Write("pkg/data/b.txt", "another");
  ASSERT_TRUE(RemoveTree(tree_ / "pkg/data").ok());
  Write("pkg/data/a.txt", "equal");
  Write("pkg/new.py", "new");
  fs::create_hard_link(tree_ / "pkg/used.py", root_ / "hard");
  fs::last_write_time(tree_ / "pkg/used.py", fs::file_time_type::clock::now());
  EXPECT_EQ(Python(script), before);
}

TEST_F(TreeViewTest, ModuleIsOneQuestion) {
  EXPECT_EQ(Python("import os\n"
                   "for n in 'used', 'data', 'none', 'bare':\n"
                   "  print(n, os.getxattr('pkg', 'user.bkm.module.' + n))\n"
                   "print(os.getxattr('.', 'user.bkm.module.pkg'))"),
            "used b'used.py\\n'\ndata b'data/\\n'\nnone b''\nbare b'bare/\\n'\n"
            "b'pkg/\\npkg/__init__.py\\n'\n");
  EXPECT_THAT(record_.lookups, ElementsAre("pkg", "pkg/bare", "pkg/data", "pkg/none", "pkg/used"));
  EXPECT_THAT(record_.asked, ElementsAre("pkg/__init__.py", "pkg/bare", "pkg/data", "pkg/used.py"));
}

TEST_F(TreeViewTest, ModuleThatIsALinkIsAskedForOtherwise) {
  EXPECT_EQ(Python("import os, errno\n"
                   "try: os.getxattr('pkg', 'user.bkm.module.link')\n"
                   "except OSError as e: print(errno.errorcode[e.errno])\n"
                   "try: os.getxattr('pkg', 'user.other')\n"
                   "except OSError as e: print(errno.errorcode[e.errno])"),
            "ENOTSUP\nENODATA\n");
  EXPECT_THAT(record_.lookups, ElementsAre("pkg/link"));
  EXPECT_THAT(record_.asked, ElementsAre("pkg/link.py"));
}

TEST_F(TreeViewTest, RecordThatIsTooLongIsIncompleteAndEmpty) {
  Run({"/usr/bin/python3", "-I", "-S", "-c",
       "import os\n"
       "for i in range(2000): os.path.exists(f'pkg/{i}')\n"
       "assert open('pkg/used.py').read() == 'value = 1\\n'"},
      {.most_names = 1000});
  EXPECT_FALSE(record_.complete);
  EXPECT_THAT(record_.asked, IsEmpty());
  Run({"/usr/bin/python3", "-I", "-S", "-c", "import os; os.path.exists('x' * 200)"},
      {.most_bytes = 100});
  EXPECT_FALSE(record_.complete);
}

TEST_F(TreeViewTest, QuestionsWithoutEndEndTheView) {
  const std::string ended = Run({"/usr/bin/python3", "-I", "-S", "-c",
                                 "import errno, os\n"
                                 "code = errno.ENODATA\n"
                                 "while code == errno.ENODATA:\n"
                                 "  try: os.getxattr('pkg', 'user.other')\n"
                                 "  except OSError as e: code = e.errno\n"
                                 "print(errno.errorcode[code])"},
                                {.most_questions = 1000});
  EXPECT_THAT(ended, AnyOf("ENOTCONN\n", "ECONNABORTED\n"));
  EXPECT_TRUE(record_.exhausted);
  EXPECT_FALSE(record_.complete);
}

TEST_F(TreeViewTest, StopsWhileSomebodyUsesIt) {
  absl::StatusOr<std::unique_ptr<TreeView>> view = TreeView::Serve(tree_);
  ASSERT_TRUE(view.ok()) << view.status();
  Descriptor out(::open((root_ / "out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  const pid_t pid = StartInView(**view, at_,
                                {"/usr/bin/python3", "-I", "-S", "-c",
                                 "import os\n"
                                 "kept = open('pkg/used.py')\n"
                                 "i = 0\n"
                                 "while True:\n"
                                 "  i += 1\n"
                                 "  try: os.stat(f'pkg/{i}')\n"
                                 "  except FileNotFoundError: pass\n"
                                 "  except OSError as e: print(e.errno, flush=True); break"},
                                out.get());
  ::usleep(300000);
  const TreeRecord record = (*view)->Stop();
  EXPECT_THAT(record.asked, Contains("pkg/used.py"));
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  const std::string error = *ReadFile(root_ / "out");
  EXPECT_TRUE(error == absl::StrCat(ENOTCONN, "\n") || error == absl::StrCat(ECONNABORTED, "\n"))
      << error;
}

TEST_F(TreeViewTest, ManyOpenFilesCostTheServerNoDescriptors) {
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  absl::StatusOr<std::unique_ptr<TreeView>> view = TreeView::Serve(tree_);
  ASSERT_TRUE(view.ok()) << view.status();
  const auto before = descriptors();
  Descriptor out(::open((root_ / "out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  const pid_t pid = StartInView(**view, at_,
                                {"/usr/bin/python3", "-I", "-S", "-c",
                                 "import time\n"
                                 "all = [open('pkg/' + n) for _ in range(200) for n in\n"
                                 "  ('used.py', 'unused.py', 'data/a.txt')]\n"
                                 "[f.read() for f in all]\n"
                                 "print('open', flush=True); time.sleep(60)"},
                                out.get());
  for (int i = 0; i < 100 && *ReadFile(root_ / "out") != "open\n"; ++i) ::usleep(50000);
  EXPECT_EQ(*ReadFile(root_ / "out"), "open\n");
  EXPECT_LE(descriptors(), before + 1);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(TreeViewTest, OnlyFilesFoldersAndLinksExist) {
  ASSERT_EQ(::mkfifo((tree_ / "pkg/fifo").c_str(), 0600), 0);
  EXPECT_EQ(Python("import os\n"
                   "print('fifo' in os.listdir('pkg'), os.path.exists('pkg/fifo'))"),
            "False False\n");
}

TEST_F(TreeViewTest, CompiledFilesCanBeReadButAreNotListed) {
  EXPECT_EQ(Shell("cat pkg/__pycache__/used.cpython-311.pyc"), "compiled");
  EXPECT_THAT(record_.read, ElementsAre("pkg/__pycache__/used.cpython-311.pyc"));
  EXPECT_THAT(record_.asked, IsEmpty());
}

TEST_F(TreeViewTest, LinkThatLeavesTheTreeIsNotFollowedByTheServer) {
  // The view holds the link as it is; what it leads to is a matter of the cell's own root.
  fs::create_directory_symlink("/etc", tree_ / "pkg/etc");
  Python("import os; assert os.path.islink('pkg/etc')");
  EXPECT_THAT(record_.asked, ElementsAre("pkg/etc"));
  EXPECT_THAT(record_.read, Not(Contains("pkg/etc/hostname")));
}

TEST_F(TreeViewTest, MissingTreeIsAnError) { EXPECT_FALSE(TreeView::Serve(root_ / "none").ok()); }

}  // namespace
}  // namespace bkm
