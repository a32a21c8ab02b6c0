// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/hosted_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/supported_python.h"
#include "harness/cell/confined_process.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/system_error.h"
#include "harness/cell/worker_settings.h"

namespace bkm {
namespace {

// Not in __main__: multiprocessing and pickle look there.
constexpr char kStart[] = "exec(__import__('sys').argv.pop(), {})";

// The message has the form that Channel reads.
constexpr char kBecomeWorker[] = R"py(
def tell(why):
    import json, os, struct
    fatal = {"type": "fatal", "message": "--python %s %s" % (sys.executable, why)}
    text = json.dumps(fatal).encode()
    os.write(CHANNEL, struct.pack("II", len(text), 0) + text)
    os._exit(2)

if sys.path[:1] == [""]:  # the folder that -c adds
    del sys.path[0]
if refusal():
    tell(refusal())
from _imp import create_dynamic
from importlib.machinery import ModuleSpec
try:
    worker = create_dynamic(ModuleSpec("bkm_worker", None, origin="/proc/self/fd/%d" % LIBRARY))
except ImportError as error:
    tell("cannot load bkm's worker (%s): name another interpreter" % error)
worker.run()
)py";

std::vector<std::string> HostedCommand(const std::filesystem::path& python) {
  // Without site.py, which runs code of the environment. Not -I: it ignores PYTHONHASHSEED. The
  // variables are those of cell_environment.cc.
  return {python.string(),
          "-s",
          "-S",
          "-X",
          "utf8",
          "-c",
          kStart,
          absl::StrCat("CHANNEL, LIBRARY = ", kWorkerChannel, ", ", kWorkerLibrary, "\n",
                       kRefusalProgram, kBecomeWorker)};
}

}  // namespace

absl::Status ExecuteHosted(const std::filesystem::path& python, int library,
                           const std::map<std::string, std::string>& environment) {
  if (::dup2(library, kWorkerLibrary) != kWorkerLibrary)
    return SystemError("cannot set up the worker's descriptors");
  // By its path here: the dynamic linker looks for libraries beside the program.
  const Descriptor program = ToPrivate(Descriptor(::open(python.c_str(), O_RDONLY | O_CLOEXEC)));
  char begin[2] = {};
  if (!program.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--python ", python.string(), " does not run (cannot start ", python.string(),
                     errno == ENOENT ? ": no such program or folder" : ": it cannot be read",
                     "): create the environment again"));
  }
  absl::Status failed;
  if (::pread(program.get(), begin, 2, 0) == 2 && begin[0] == '#' && begin[1] == '!') {
    failed = absl::FailedPreconditionError("it is a script");
  } else {
    failed = Execute(program.get(), HostedCommand(python), environment, kWorkerLibrary);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("--python ", python.string(), " does not run (", std::string(failed.message()),
                   "): name an interpreter that runs on this machine"));
}

}  // namespace bkm
