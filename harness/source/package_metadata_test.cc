// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/package_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class PackageReaderTest : public ::testing::Test {
 protected:
  PackageReaderTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "package-")) {}
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFile(folder_ / name, content).ok());
  }
  std::vector<std::string> Declared() {
    const absl::StatusOr<PackageMetadata> metadata = reader_.ReadDeclared(folder_);
    EXPECT_TRUE(metadata.ok()) << metadata.status();
    return metadata.ok() ? metadata->requirements : std::vector<std::string>{"failed"};
  }
  std::string Error() { return std::string(reader_.ReadDeclared(folder_).status().message()); }

  fs::path folder_;
  PackageReader reader_{"/usr/bin/python3"};
};

TEST_F(PackageReaderTest, ProjectTableDeclares) {
  Write("pyproject.toml", "[project]\nname = 'p'\ndependencies = ['a>=1', 'b']\n");
  Write("setup.py", "from setuptools import setup\nsetup(install_requires=['other'])\n");
  EXPECT_THAT(Declared(), ElementsAre("a>=1", "b"));
  EXPECT_EQ(reader_.ReadDeclared(folder_)->name, "p");
}

TEST_F(PackageReaderTest, DynamicFilesDeclare) {
  Write("pyproject.toml",
        "[project]\nname='p'\ndynamic=['dependencies']\n"
        "[tool.setuptools.dynamic]\ndependencies = {file = ['requirements.txt']}\n");
  Write("requirements.txt", "# comment\na>=1  # why\n\nb[x] ; python_version > '3'\n");
  EXPECT_THAT(Declared(), ElementsAre("a>=1", "b[x] ; python_version > '3'"));
}

TEST_F(PackageReaderTest, SetupScriptIsReadAndNeverRun) {
  Write("pyproject.toml", "[project]\nname='p'\ndynamic=['version', 'dependencies']\n");
  Write("setup.py",
        "import os, setuptools\n"
        "os.mkdir('" +
            (folder_ / "ran").string() +
            "')\n"
            "base = ['a', 'b<2']\n"
            "more: list = ['c']\n"
            "setuptools.setup(name='p', version=open('v').read(), install_requires=base + more)\n");
  EXPECT_THAT(Declared(), ElementsAre("a", "b<2", "c"));
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(PackageReaderTest, HostileDeclarationsEndQuicklyWithTheirKind) {
  constexpr auto kNotAllowed = absl::StatusCode::kPermissionDenied;
  constexpr auto kMalformed = absl::StatusCode::kInvalidArgument;
  const std::string dynamic =
      "[project]\nname='p'\ndynamic=['dependencies']\n[tool.setuptools.dynamic]\ndependencies=";
  std::string doubling = "a = ['xxxxxxxxxxxxxxxx']\n";
  for (int i = 0; i < 60; ++i) doubling += "a = a + a\n";
  std::string sum = "setup(install_requires=['a']";
  for (int i = 0; i < 100000; ++i) sum += "+['a']";
  struct Case {
    const char* file;
    std::string content;
    absl::StatusCode code;
  };
  const std::vector<Case> cases = {
      {"pyproject.toml", "[project]\ndependencies = 5\n", kMalformed},
      {"pyproject.toml", "[project]\ndependencies = {}\n", kMalformed},
      {"pyproject.toml", "[project]\ndependencies = [5]\n", kMalformed},
      {"pyproject.toml", "[project]\ndependencies = [['a']]\n", kMalformed},
      {"pyproject.toml", "[project]\nname = 5\n", kMalformed},
      {"pyproject.toml", "[project]\nname = '../x'\n", kMalformed},
      {"pyproject.toml", "project = 5\n", kMalformed},
      {"pyproject.toml", "tool = 5\n", kMalformed},
      {"pyproject.toml", "[tool]\nsetuptools = 5\n", kMalformed},
      {"pyproject.toml", "[project]\ndynamic = 5\n[tool.setuptools.dynamic]\n", kMalformed},
      {"pyproject.toml", "\xff\xfe", kMalformed},
      {"pyproject.toml", std::string("a = 'b\0c'\n", 10), kMalformed},
      {"pyproject.toml", "a = " + std::string(200000, '['), kMalformed},
      {"pyproject.toml", "[project]\ndependencies = ['a', 'b @ file:///x']\n", kNotAllowed},
      {"pyproject.toml", "[project]\ndependencies = [\"a\\n-r /etc/passwd\"]\n", kNotAllowed},
      {"pyproject.toml", "[project]\ndependencies = ['a==${HOME}']\n", kNotAllowed},
      {"pyproject.toml", std::string(5 << 20, '#'), kNotAllowed},
      {"pyproject.toml", dynamic + "{file = ['/etc/passwd']}\n", kNotAllowed},
      {"pyproject.toml", dynamic + "{file = ['../x']}\n", kNotAllowed},
      {"pyproject.toml", dynamic + "{file = ['missing.txt']}\n", kNotAllowed},
      {"pyproject.toml", dynamic + "{file = ['']}\n", kNotAllowed},
      {"pyproject.toml", dynamic + "{file = [\"a\\u0000b\"]}\n", kNotAllowed},
      {"pyproject.toml", dynamic + "{file = 5}\n", kMalformed},
      {"pyproject.toml", "[tool.poetry]\nname = 'p'\n", kNotAllowed},
      {"setup.py", "setup(install_requires=[", kMalformed},
      {"setup.py", "setup(install_requires=5)", kNotAllowed},
      {"setup.py", "setup(install_requires=[['a']])", kMalformed},
      {"setup.py", "setup(install_requires=['a'] + 'b')", kMalformed},
      {"setup.py", "setup(install_requires='-r /etc/passwd')", kNotAllowed},
      {"setup.py", "setup(install_requires=[\"\\ud800\"])", kMalformed},
      {"setup.py", "setup(install_requires=open('/etc/passwd').readlines())", kNotAllowed},
      {"setup.py", doubling + "setup(install_requires=a)", kNotAllowed},
      {"setup.py", sum + ")", kMalformed},
      {"setup.py", "x = " + std::string(100000, '-') + "1", kMalformed},
      {"setup.py", "x = " + std::string(100000, '('), kMalformed},
      {"setup.py", std::string("a\0b", 3), kMalformed},
      {"setup.cfg", "[options]\ninstall_requires = a\ninstall_requires = b\n", kMalformed},
      {"setup.cfg", "[options\n", kMalformed},
      {"setup.cfg", "[options]\ninstall_requires = file: /etc/passwd\n", kNotAllowed},
      {"setup.cfg", "[options]\ninstall_requires =\n  -e .\n", kNotAllowed},
      {"setup.cfg", "\xff", kMalformed},
  };
  for (const Case& one : cases) {
    Write(one.file, one.content);
    EXPECT_EQ(reader_.ReadDeclared(folder_).status().code(), one.code)
        << one.file << ": " << one.content.substr(0, 100) << "\n"
        << Error();
    fs::remove(folder_ / one.file);
  }
}

TEST_F(PackageReaderTest, OnlyRegularFilesInsideTheFolderAreRead) {
  const fs::path outside = *CreateTempDirectory(::testing::TempDir(), "outside-");
  ASSERT_TRUE(WriteFile(outside / "secret.txt", "secret\n").ok());
  Write("pyproject.toml",
        "[project]\nname='p'\ndynamic=['dependencies']\n"
        "[tool.setuptools.dynamic]\ndependencies={file=['r/x.txt']}\n");
  const auto code = [&] { return reader_.ReadDeclared(folder_).status().code(); };
  fs::create_directory_symlink(outside, folder_ / "r");
  fs::create_symlink("secret.txt", outside / "x.txt");
  EXPECT_EQ(code(), absl::StatusCode::kPermissionDenied) << "a folder that leaves the tree";
  fs::remove(folder_ / "r");
  fs::create_directory(folder_ / "r");
  fs::create_symlink(outside / "secret.txt", folder_ / "r/x.txt");
  EXPECT_EQ(code(), absl::StatusCode::kPermissionDenied) << "a file that leaves the tree";
  fs::remove(folder_ / "r/x.txt");
  fs::create_symlink("x.txt", folder_ / "r/x.txt");
  EXPECT_EQ(code(), absl::StatusCode::kPermissionDenied) << "a link to itself";
  fs::remove(folder_ / "r/x.txt");
  ASSERT_EQ(::mkfifo((folder_ / "r/x.txt").c_str(), 0600), 0);
  EXPECT_EQ(code(), absl::StatusCode::kPermissionDenied) << "a pipe, which would block";
  fs::remove(folder_ / "r/x.txt");
  fs::create_directory(folder_ / "r/x.txt");
  EXPECT_EQ(code(), absl::StatusCode::kPermissionDenied) << "a folder";
  fs::remove(folder_ / "r/x.txt");
  Write("r/y.txt", "a>=1\n");
  fs::create_symlink("y.txt", folder_ / "r/x.txt");
  EXPECT_THAT(Declared(), ElementsAre("a>=1"));
}

TEST_F(PackageReaderTest, NothingOfTheFolderIsImported) {
  for (const char* name : {"json.py", "tomllib.py", "ast.py", "sitecustomize.py", "re.py"})
    Write(name, "open('" + (folder_ / "ran").string() + "', 'w')\n");
  Write("pyproject.toml", "[project]\nname='p'\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  ::setenv("PYTHONPATH", folder_.c_str(), 1);
  EXPECT_THAT(Declared(), IsEmpty());
  ::unsetenv("PYTHONPATH");
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(PackageReaderTest, HostileMetadataOfAWheelHasItsKind) {
  const auto code = [&](const std::string& lines) {
    Write("METADATA", "Metadata-Version: 2.1\nName: p\n" + lines + "\n");
    return reader_.ReadInstalled(folder_ / "METADATA").status().code();
  };
  EXPECT_EQ(code("Requires-Dist: evil @ file:///x"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("Requires-Dist: a\n -r /etc/passwd"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("Requires-Dist: a<<1"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Requires-Dist: a" + std::string(1 << 20, ';')),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("Requires-Dist: \xff"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Summary: " + std::string(17 << 20, 'x')), absl::StatusCode::kPermissionDenied);
}

TEST_F(PackageReaderTest, SourceThatCannotBeCompiledCostsOnlyItself) {
  Write("good.py", "x = 1\n");
  Write("bad.py", "x =\n");
  Write("deep.py", "x = " + std::string(200000, '-') + "1\n");
  Write("nul.py", std::string("x\0", 2));
  fs::create_symlink("/etc/passwd", folder_ / "link.py");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.py").c_str(), 0600), 0);
  const fs::path outside = *CreateTempDirectory(::testing::TempDir(), "outside-");
  Write("sub/other.py", "x = 1\n");
  fs::create_directory_symlink(outside, folder_ / "sub/__pycache__");
  EXPECT_EQ(reader_.CompileBytecode(folder_), absl::OkStatus());
  std::vector<std::string> compiled;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "__pycache__"))
    compiled.push_back(entry.path().stem().stem());
  EXPECT_THAT(compiled, ElementsAre("good"));
  EXPECT_TRUE(fs::is_empty(outside));
}

TEST_F(PackageReaderTest, BuildRequirementsAreReadFromTheArchive) {
  const auto pack = [&](const std::string& pyproject) {
    Write("p-1/pyproject.toml", pyproject);
    EXPECT_TRUE(RunForOutput({.argv = {"tar", "-C", folder_.string(), "-czf",
                                       (folder_ / "p.tar.gz").string(), "p-1"}})
                    .ok());
    return reader_.ReadBuildRequirements(folder_ / "p.tar.gz");
  };
  EXPECT_THAT(*pack("[build-system]\nrequires = ['flit_core>=3']\n"), ElementsAre("flit_core>=3"));
  EXPECT_THAT(*pack(""), ElementsAre("setuptools>=40.8.0"));
  EXPECT_TRUE(
      absl::IsPermissionDenied(pack("[build-system]\nrequires = ['evil @ file:///x']\n").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(pack("[build-system]\nrequires = 5\n").status()));
  Write("p.tar.gz", "no archive");
  EXPECT_TRUE(
      absl::IsInvalidArgument(reader_.ReadBuildRequirements(folder_ / "p.tar.gz").status()));
}

TEST_F(PackageReaderTest, ListThatOnlyRunningCodeWouldGiveIsAnError) {
  for (const char* change : {"reqs += ['b']", "reqs.append('b')", "if X:\n  reqs = []"}) {
    Write("setup.py", std::string("from setuptools import setup\nreqs = ['a']\n") + change +
                          "\nsetup(install_requires=reqs)\n");
    EXPECT_THAT(Error(), StartsWith("setup.py: only running line ")) << change;
  }
}

TEST_F(PackageReaderTest, SetupCfgDeclares) {
  Write("setup.py", "import setuptools\nsetuptools.setup()\n");
  Write("setup.cfg", "[metadata]\nname = p\n[options]\ninstall_requires =\n  a>=1\n  b\n");
  EXPECT_THAT(Declared(), ElementsAre("a>=1", "b"));
}

TEST_F(PackageReaderTest, FolderWithoutMetadataDeclaresNothing) {
  EXPECT_THAT(Declared(), IsEmpty());
}

TEST_F(PackageReaderTest, BrokenMetadataIsAnError) {
  Write("pyproject.toml", "[project\n");
  EXPECT_THAT(Error(), StartsWith("pyproject.toml: "));
}

TEST_F(PackageReaderTest, AReaderThatIsKilledFromOutsideIsNoFaultOfThePackage) {
  Write("pyproject.toml", "[project]\nname = 'p'\ndependencies = ['a>=1']\n");
  const fs::path python = folder_ / "python";
  const std::string script = "#!/bin/sh\n[ -e " + (folder_ / "killed").string() + " ] || { touch " +
                             (folder_ / "killed").string() +
                             "; kill -KILL $$; }\nexec /usr/bin/python3 \"$@\"\n";
  Write("python", script);
  fs::permissions(python, fs::perms::owner_all);
  const absl::StatusOr<PackageMetadata> metadata = PackageReader(python).ReadDeclared(folder_);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_THAT(metadata->requirements, ElementsAre("a>=1"));

  Write("python", "#!/bin/sh\nkill -KILL $$\n");
  EXPECT_EQ(PackageReader(python).ReadDeclared(folder_).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(PackageReaderTest, InstalledMetadataLeavesExtrasOut) {
  Write("METADATA",
        "Metadata-Version: 2.1\nName: p\nRequires-Dist: a>=1\n"
        "Requires-Dist: t ; extra == 'test'\nRequires-Dist: b ; python_version > '3'\n\nbody\n");
  EXPECT_THAT(reader_.ReadInstalled(folder_ / "METADATA")->requirements,
              ElementsAre("a>=1", "b ; python_version > '3'"));
}

TEST_F(PackageReaderTest, PylockNamesVersionsHashesAndTimes) {
  const char* text =
      "lock-version = '1.0'\n"
      "[[packages]]\nname = 'a'\nversion = '1.0'\n"
      "sdist = {url='u', upload-time=2026-01-03T00:00:00Z, hashes={sha256='ff'}}\n"
      "wheels = [{url='u', upload-time=2026-01-02T00:00:00Z, hashes={sha256='bb'}},"
      "{url='v', upload-time=2026-01-04T00:00:00Z, hashes={sha256='aa'}}]\n"
      "[[packages]]\nname = 'b'\nversion = '2'\n"
      "sdist = {path='/x/b.tar.gz', hashes={sha256='cc'}}\n";
  EXPECT_THAT(
      *reader_.ReadPylock(text),
      ElementsAre(
          PinnedPackage{
              "a", "1.0", {"aa", "bb"}, "2026-01-02", {{"u", "bb", true}, {"v", "aa", true}}},
          PinnedPackage{"b", "2", {"cc"}, "", {{"", "cc", false}}}));
}

}  // namespace
}  // namespace bkm
