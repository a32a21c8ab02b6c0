// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/file_steps.h"

#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "harness/base/descriptor.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

std::atomic<FileSteps*> replaced = nullptr;

}  // namespace

int FileSteps::Write(int file, const fs::path&, absl::string_view content) {
  return WriteAll(file, content) ? 0 : errno;
}

int FileSteps::Sync(int file, const fs::path&) { return ::fsync(file) == 0 ? 0 : errno; }

int FileSteps::Rename(const fs::path& from, const fs::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int FileSteps::SyncFolder(int folder, const fs::path&) {
  // Some file systems cannot sync a folder, and say so with EINVAL.
  return ::fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
}

int FileSteps::SyncTree(int folder, const fs::path&) { return ::syncfs(folder) == 0 ? 0 : errno; }

void FileSteps::Remove(const fs::path&) {}

FileSteps& FileSteps::Current() {
  static FileSteps real;
  FileSteps* const other = replaced.load();
  return other ? *other : real;
}

ReplacedFileSteps::ReplacedFileSteps(FileSteps& steps) : before_(replaced.exchange(&steps)) {}

ReplacedFileSteps::~ReplacedFileSteps() { replaced.store(before_); }

}  // namespace bkm
