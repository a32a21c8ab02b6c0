// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/torture/torture.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/model/observation.h"
#include "harness/store/checksums.h"
#include "harness/torture/bkm_process.h"
#include "harness/torture/journal.h"
#include "harness/torture/processes.h"
#include "harness/torture/torture_subjects.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of an undisturbed run of a matrix: it installs packages and computes goldens and floors.
constexpr std::chrono::hours kLongestReference(1);
// Disturbed runs of one round before it is completed without disturbance.
constexpr int kMostDisturbed = 8;

// Complete evidence in a run directory: the text of observation.json by the cell's folder.
using Evidence = std::map<std::string, std::string>;

Evidence EvidenceIn(const fs::path& run) {
  Evidence evidence;
  std::error_code error;
  for (const fs::directory_entry& cell : fs::directory_iterator(run / "cells", error)) {
    if (absl::StrContains(cell.path().filename().string(), ".damaged-")) continue;
    const absl::StatusOr<std::string> text = ReadFile(cell.path() / "observation.json");
    if (!text.ok() || !VerifyManifest(cell.path()).ok()) continue;
    const absl::StatusOr<Json> json = ParseJson(*text, "observation.json");
    if (!json.ok()) continue;
    const absl::StatusOr<Observation> seen = ObservationFromJson(*json, "observation.json");
    if (seen.ok() && !seen->SaysNothing()) evidence[cell.path().filename()] = *text;
  }
  return evidence;
}

// What must not depend on disturbances.
std::string Facts(const Json& cell) {
  std::vector<std::string> facts;
  for (const char* key : {"verdict", "stage", "reason", "message"}) {
    const Json value = cell.value(key, Json());
    facts.push_back(value.is_string() ? value.get<std::string>() : "none");
  }
  return absl::StrJoin(facts, " | ");
}

enum class Kind {
  kKillRunner,
  kKillOthers,
  kKillUv,
  kKillReference,
  kTwoRunners,
  kFullForSome,
  kFullFolder,
  kSlow,
  kOneCellFails,
  kClock,
  kPowerCut,
  kFlippedBit,
  kDamagedCache,
};
enum class With { kAll, kFakePairs, kMatrix };
struct Disturbing {
  Kind kind;
  const char* name;
  With with = With::kAll;
};
constexpr Disturbing kKinds[] = {
    {Kind::kKillRunner, "runner killed"},
    {Kind::kKillRunner, "runner killed"},
    {Kind::kKillOthers, "workers and cells killed"},
    {Kind::kKillOthers, "workers and cells killed"},
    {Kind::kKillOthers, "workers and cells killed"},
    {Kind::kKillOthers, "workers and cells killed"},
    // The fake pairs need neither.
    {Kind::kKillUv, "uv killed", With::kMatrix},
    {Kind::kKillReference, "reference worker killed", With::kMatrix},
    {Kind::kTwoRunners, "two runners"},
    {Kind::kFullForSome, "disk full for some writes"},
    {Kind::kFullFolder, "disk full"},
    {Kind::kSlow, "slow disk"},
    {Kind::kOneCellFails, "one cell's folder fails"},
    {Kind::kClock, "clock jumps"},
    {Kind::kPowerCut, "power cut"},
    {Kind::kFlippedBit, "flipped bit"},
    // Installed packages are not checked by their content, and uv's cache shares their files.
    {Kind::kDamagedCache, "damaged cache", With::kFakePairs},
};

class Torturer {
 public:
  explicit Torturer(const TortureOptions& options)
      : options_(options), random_(options.seed), start_(Clock::now()) {}

  absl::StatusOr<TortureResult> Run() {
    if (IsReal()) {
      matrix_ = options_.matrix;
    } else {
      ASSIGN_OR_RETURN(matrix_, WriteTortureSubjects(options_.folder));
    }
    for (const Disturbing& each : kKinds) {
      if (IsPossible(each)) result_.took_place[each.name] = 0;
    }
    RETURN_IF_ERROR(TakeReference());
    while (!Done()) {
      RETURN_IF_ERROR(Round());
      ++result_.rounds;
      if (options_.progress)
        options_.progress(absl::StrCat("round ", result_.rounds, ", ", TortureLine()));
    }
    result_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return std::move(result_);
  }

 private:
  bool IsReal() const { return !options_.matrix.empty(); }
  int Toss(int sides) { return static_cast<int>(random_() % static_cast<uint64_t>(sides)); }
  fs::path out() const { return options_.folder / "out"; }
  fs::path cache() const { return options_.folder / "cache"; }
  fs::path acts() const { return options_.folder / "acts"; }
  bool IsPossible(const Disturbing& each) const {
    return (each.with == With::kAll ||
            each.with == (IsReal() ? With::kMatrix : With::kFakePairs)) &&
           !result_.not_possible.contains(each.name);
  }
  // Mostly one that did not take place yet: a short torture has each.
  const Disturbing& ChooseKind() {
    std::vector<const Disturbing*> possible, missing;
    for (const Disturbing& each : kKinds) {
      if (!IsPossible(each)) continue;
      possible.push_back(&each);
      if (result_.took_place.at(each.name) == 0) missing.push_back(&each);
    }
    const auto& from = missing.empty() || Toss(4) == 0 ? possible : missing;
    return *from[static_cast<size_t>(Toss(static_cast<int>(from.size())))];
  }
  bool Done() const {
    if (options_.once_each && result_.missing().empty()) return true;
    return Clock::now() - start_ > std::chrono::duration<double>(60 * options_.minutes) ||
           (options_.kills > 0 && result_.kills() >= options_.kills);
  }
  std::string TortureLine() const {
    const std::vector<std::string> missing = result_.missing();
    return absl::StrFormat("killed %d, lost %d, repeated %d, wrong %d%s", result_.kills(),
                           result_.lost, result_.repeated, result_.wrong,
                           missing.empty() ? "" : "; not yet: " + absl::StrJoin(missing, ", "));
  }
  void Trouble(int TortureResult::*count, const std::string& what) {
    ++(result_.*count);
    result_.troubles.push_back(absl::StrCat("round ", result_.rounds + 1, " (",
                                            absl::StrJoin(history_, ", "), "): ", what));
    if (options_.progress) options_.progress(result_.troubles.back());
  }

  std::vector<std::string> Arguments(bool store) const {
    std::vector<std::string> argv = {options_.bkm, "run", matrix_, "--out", out(), "--jobs", "2"};
    if (!IsReal()) {
      argv.push_back("--git-mirror");
      argv.push_back(options_.folder / "mirrors");
    }
    argv.insert(argv.end(), options_.options.begin(), options_.options.end());
    if (!store) argv.push_back("--no-store");
    return argv;
  }
  std::map<std::string, std::string> Environment(const std::string& disturbance) const {
    return {{"BKM_ROOT", options_.root},
            {"BKM_BIN", options_.bin},
            {"BKM_CACHE", cache()},
            // The fake pairs may need no registry.
            {"BKM_UV", IsReal() ? options_.uv : options_.folder / "no-uv"},
            {"BKM_LAUNCHER", "bkm"},
            {"BKM_DISTURB",
             disturbance.empty() ? "" : absl::StrCat(disturbance, ",acts=", acts().string())}};
  }
  std::unique_ptr<BkmProcess> Start(const std::string& disturbance, bool store,
                                    const char* output = "output") const {
    return std::make_unique<BkmProcess>(Arguments(store), Environment(disturbance),
                                        options_.folder / output);
  }

  absl::StatusOr<Json> RunJson() const { return ReadJsonFile(out() / "run.json"); }

  // The undisturbed run. It must be complete, and another one must equal it.
  absl::Status TakeReference() {
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_ERROR(RemoveTree(out()));
      const auto before = Clock::now();
      const std::unique_ptr<BkmProcess> process = Start("", /*store=*/false);
      process->WaitFor(kLongestReference);
      usual_ms_ =
          static_cast<int>(std::chrono::duration_cast<milliseconds>(Clock::now() - before).count());
      // The first one of a matrix also fetched and installed everything.
      longest_ = std::max(longest_, milliseconds(10 * usual_ms_));
      const absl::StatusOr<Json> run = RunJson();
      if (!run.ok() || !IsTrue(*run, "finished")) {
        return absl::FailedPreconditionError(
            absl::StrCat("the undisturbed run failed: ",
                         ReadFile(options_.folder / "output").value_or("no output")));
      }
      std::map<std::string, std::string> facts;
      for (const Json& cell : (*run)["cells"]) facts[cell["id"].get<std::string>()] = Facts(cell);
      if (i > 0 && facts != reference_)
        return absl::InternalError("two undisturbed runs differ: nothing can be compared");
      reference_ = std::move(facts);
    }
    return RemoveTree(out());
  }

  absl::Status Round() {
    history_.clear();
    RETURN_IF_ERROR(RemoveTree(out()));
    if (!IsReal() && Toss(5) == 0) RETURN_IF_ERROR(RemoveTree(cache()));
    const int disturbed = 1 + Toss(kMostDisturbed);
    for (int i = 0; i < disturbed && !Done(); ++i) RETURN_IF_ERROR(DisturbOnce());
    // Without disturbance, one run completes all; a cell that the machine failed is run again.
    for (int i = 0; i < 3; ++i) {
      const Evidence before = EvidenceIn(out());
      const std::unique_ptr<BkmProcess> process = Start("", Toss(2) == 0);
      if (!process->WaitFor(longest_)) Trouble(&TortureResult::lost, "a run does not end");
      Compare(before, /*complete=*/false);
      if (IsComplete()) return absl::OkStatus();
    }
    Compare({}, /*complete=*/true);
    return absl::OkStatus();
  }

  bool IsComplete() const {
    const absl::StatusOr<Json> run = RunJson();
    if (!run.ok() || !IsTrue(*run, "finished")) return false;
    std::map<std::string, std::string> facts;
    for (const Json& cell : (*run)["cells"]) facts[cell["id"].get<std::string>()] = Facts(cell);
    return facts == reference_;
  }

  // Compares the run directory with the reference, and with the evidence that it had before.
  void Compare(const Evidence& before, bool complete) {
    const Evidence now = EvidenceIn(out());
    for (const auto& [folder, text] : before) {
      const auto found = now.find(folder);
      if (found == now.end()) {
        Trouble(&TortureResult::lost, absl::StrCat(folder, ": its evidence is gone"));
      } else if (found->second != text) {
        Trouble(&TortureResult::repeated, absl::StrCat(folder, " was measured again"));
      }
    }
    const absl::StatusOr<Json> run = RunJson();
    if (!run.ok()) {
      if (complete) Trouble(&TortureResult::lost, std::string(run.status().message()));
      return;
    }
    std::set<std::string> seen;
    for (const Json& cell : (*run)["cells"]) {
      const std::string id = cell["id"];
      seen.insert(id);
      const Json verdict = cell.value("verdict", Json());
      const bool open = verdict.is_null() || verdict == "spurious";
      const auto wanted = reference_.find(id);
      const std::string facts = Facts(cell);
      if (wanted == reference_.end() || (!open && facts != wanted->second)) {
        Trouble(&TortureResult::wrong,
                absl::StrCat(id, ": ", facts, " instead of ",
                             wanted == reference_.end() ? "nothing" : wanted->second));
      } else if (complete && open) {
        Trouble(&TortureResult::lost, absl::StrCat(id, ": ", facts));
      }
    }
    for (const auto& [id, facts] : reference_) {
      if (complete && !seen.contains(id)) Trouble(&TortureResult::lost, id + " is not in run.json");
    }
  }

  absl::Status DisturbOnce() {
    const Disturbing& chosen = ChooseKind();
    history_.push_back(chosen.name);
    ++result_.disturbed[chosen.name];
    // Without cells to run, there is little to disturb.
    if (Toss(4) != 0) RETURN_IF_ERROR(ForgetSomeCells());
    if (IsReal()) RETURN_IF_ERROR(ForgetWhatIsPrepared(chosen.kind));
    std::error_code error;
    fs::remove(acts(), error);
    ASSIGN_OR_RETURN(const bool took_place, Disturb(chosen.kind));
    if (took_place) ++result_.took_place.at(chosen.name);
    return absl::OkStatus();
  }

  // Whether the disturbance was seen to take place.
  absl::StatusOr<bool> Disturb(Kind kind) {
    Evidence before = EvidenceIn(out());
    const std::map<std::string, int> killed = result_.killed;
    const auto kills = [&](absl::string_view role) {
      const std::string key(role);
      const auto find = [&](const std::map<std::string, int>& counts) {
        const auto it = counts.find(key);
        return it == counts.end() ? 0 : it->second;
      };
      return find(result_.killed) - find(killed);
    };
    bool took_place = false;
    switch (kind) {
      case Kind::kKillRunner:
        KillDuring("", {{Toss(usual_ms_), "runner"}});
        took_place = kills("runner") > 0;
        break;
      case Kind::kKillOthers: {
        const int all = result_.kills();
        KillDuring("", RandomKills());
        const int others = result_.kills() - all - kills("runner") - kills("cell");
        took_place = kills("cell") > 0 && others > 0;
        break;
      }
      case Kind::kKillUv:
        KillDuring("", {{Toss(usual_ms_) / 4, "uv"}});
        took_place = kills("uv") > 0;
        break;
      case Kind::kKillReference:
        KillDuring("", {{Toss(usual_ms_) / 4, "reference worker"}});
        took_place = kills("reference worker") > 0;
        break;
      case Kind::kTwoRunners:
        took_place = TwoRunners();
        break;
      case Kind::kFullForSome: {
        const int from = 1 + Toss(60);
        KillDuring(absl::StrCat("full=", from, "-", from + Toss(30)), {});
        took_place = HasActed();
        break;
      }
      case Kind::kFullFolder:
        RETURN_IF_ERROR(FullFolder());
        took_place = HasActed();
        break;
      case Kind::kSlow:
        KillDuring("slow=" + std::to_string(1 + Toss(8)), RandomKills());
        took_place = HasActed();
        break;
      case Kind::kOneCellFails: {
        const std::string cell = SomeCell();
        if (!cell.empty()) RETURN_IF_ERROR(RemoveTree(out() / "cells" / cell));
        before.erase(cell);
        KillDuring("eio=cells/" + cell, {});
        took_place = HasActed();
        break;
      }
      case Kind::kClock:
        KillDuring(absl::StrCat("clock=", random_() >> 1), RandomKills());
        took_place = HasActed();
        break;
      case Kind::kPowerCut:
        return PowerCut();
      case Kind::kFlippedBit: {
        ASSIGN_OR_RETURN(took_place, FlipBit(out() / "cells"));
        before = EvidenceIn(out());
        break;
      }
      case Kind::kDamagedCache: {
        ASSIGN_OR_RETURN(took_place, FlipBit(cache()));
        before = EvidenceIn(out());  // a run and the cache share files
        break;
      }
    }
    Compare(before, /*complete=*/false);
    return took_place;
  }

  // Whether what $BKM_DISTURB asked for acted in the last run (harness/base/disturbance.h).
  bool HasActed() const {
    std::error_code error;
    return fs::file_size(acts(), error) > 0 && !error;
  }

  std::vector<std::string> CellFolders() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(out() / "cells", error))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string SomeCell() {
    const std::vector<std::string> names = CellFolders();
    return names.empty() ? "" : names[static_cast<size_t>(Toss(static_cast<int>(names.size())))];
  }
  absl::Status ForgetSomeCells() {
    for (const std::string& name : CellFolders()) {
      if (Toss(3) != 0) RETURN_IF_ERROR(RemoveTree(out() / "cells" / name));
    }
    return absl::OkStatus();
  }

  // So that uv and the reference worker have something to do.
  absl::Status ForgetWhatIsPrepared(Kind kind) {
    constexpr std::pair<const char*, Kind> kPrepared[] = {{"locks", Kind::kKillUv},
                                                          {"environments", Kind::kKillUv},
                                                          {"references", Kind::kKillReference},
                                                          {"probes", Kind::kKillReference}};
    for (const auto& [name, who] : kPrepared) {
      if (kind == who || Toss(3) == 0) RETURN_IF_ERROR(RemoveTree(cache() / name));
    }
    // A run keeps its own copies.
    if (kind == Kind::kKillUv || kind == Kind::kKillReference) return RemoveTree(out());
    return absl::OkStatus();
  }

  using Kills = std::vector<std::pair<int, std::string>>;  // after so many milliseconds: a role

  // Up to ten other processes (those of a matrix: what is neither cell nor runner, uv and the
  // reference worker for example), and sometimes the runner at last. At most one of them may be a
  // cell: a cell that dies of SIGKILL a second time counts as one that kills itself.
  Kills RandomKills() {
    Kills kills;
    for (int i = Toss(10); i > 0; --i)
      kills.emplace_back(Toss(usual_ms_), IsReal() ? "not a cell" : "worker");
    kills.emplace_back(Toss(usual_ms_), Toss(3) == 0 ? "any" : "cell");
    std::sort(kills.begin(), kills.end());
    if (Toss(3) == 0) kills.emplace_back(kills.back().first + Toss(usual_ms_), "runner");
    return kills;
  }

  void KillDuring(const std::string& disturbance, const Kills& kills) {
    const std::unique_ptr<BkmProcess> process = Start(disturbance, Toss(4) == 0);
    KillIn(*process, kills);
    if (!process->WaitFor(longest_)) Trouble(&TortureResult::lost, "a run does not end");
  }

  void KillIn(BkmProcess& process, const Kills& kills) {
    const auto start = Clock::now();
    for (const auto& [after_ms, role] : kills) {
      const auto left = start + milliseconds(after_ms) - Clock::now();
      const auto wait = std::chrono::duration_cast<milliseconds>(left);
      if (process.WaitFor(std::max(wait, milliseconds(0)))) return;
      // Waits for a process of this role to appear.
      while (!Kill(process, role)) {
        if (process.WaitFor(milliseconds(10)) || Clock::now() - start > longest_) return;
      }
    }
  }

  // False when there is no such process now.
  bool Kill(BkmProcess& process, const std::string& role) {
    const std::vector<RunningProcess> family = ProcessesBelow(process.pid());
    std::vector<RunningProcess> candidates;
    for (const RunningProcess& member : family) {
      if (member.role == role || (role == "any" && member.role != "runner") ||
          (role == "not a cell" && member.role != "runner" && member.role != "cell"))
        candidates.push_back(member);
    }
    if (candidates.empty()) return false;
    const RunningProcess& victim =
        candidates[static_cast<size_t>(Toss(static_cast<int>(candidates.size())))];
    if (::kill(victim.pid, SIGKILL) != 0) return false;
    ++result_.killed[victim.role];
    if (victim.role != "runner") return true;
    process.WaitFor(std::chrono::seconds(10));
    ExpectGone(family);
    return true;
  }

  // All that ran below a dead runner must end at once.
  void ExpectGone(std::vector<RunningProcess> family) {
    for (int i = 0; i < 5000 && !family.empty(); ++i) {
      std::erase_if(family, [](const RunningProcess& member) { return !Runs(member.pid); });
      if (!family.empty()) std::this_thread::sleep_for(milliseconds(1));
    }
    for (const RunningProcess& member : family) {
      Trouble(&TortureResult::left, absl::StrCat("a process outlived its runner: ", member.role));
      ::kill(member.pid, SIGKILL);
    }
  }

  static bool Runs(pid_t pid) {
    const absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
    return stat.ok() && !absl::StrContains(*stat, ") Z ") && !absl::StrContains(*stat, ") X ");
  }

  // Whether one of them was refused, because both ran.
  bool TwoRunners() {
    const std::unique_ptr<BkmProcess> first = Start("", Toss(2) == 0);
    first->WaitFor(milliseconds(Toss(usual_ms_)));
    const std::unique_ptr<BkmProcess> second = Start("", Toss(2) == 0, "second");
    if (Toss(2) == 0) KillIn(*first, {{Toss(usual_ms_), "runner"}});
    if (!first->WaitFor(longest_) || !second->WaitFor(longest_))
      Trouble(&TortureResult::lost, "a run does not end");
    return absl::StrContains(ReadFile(options_.folder / "second").value_or(""), " is in use by ") ||
           absl::StrContains(ReadFile(options_.folder / "output").value_or(""), " is in use by ");
  }

  // Runs bkm in a file system of its own with little room, and takes what is left there.
  absl::Status FullFolder() {
    const fs::path saved = options_.folder / "saved";
    RETURN_IF_ERROR(RemoveTree(saved));
    RETURN_IF_ERROR(CreateDirectories(saved));
    RETURN_IF_ERROR(CreateDirectories(out()));
    static constexpr char kScript[] =
        "out=$1 saved=$2 free=$3; shift 3\n"
        "cp -a \"$out/.\" \"$saved\" || exit 8\n"
        "size=$(($(du -sk \"$saved\" | cut -f1) + free))k\n"
        "mount -t tmpfs -o size=$size,mode=0755 torture \"$out\" 2>/dev/null || exit 9\n"
        "cp -a \"$saved/.\" \"$out\" || exit 8  # what is there must be there\n"
        "\"$@\"\n"
        "rm -rf \"$saved\" && cp -a \"$out\" \"$saved\" || exit 8\n"
        "exit 0\n";
    std::vector<std::string> argv = {"unshare", "--mount"};
    if (::geteuid() != 0) argv.push_back("--map-root-user");
    argv.insert(argv.end(), {"sh", "-c", kScript, "sh", out().string(), saved.string(),
                             absl::StrCat(64 * (1 + Toss(12)))});
    for (const std::string& word : Arguments(Toss(2) == 0)) argv.push_back(word);
    // `slow=0` disturbs nothing: it lets the writes that find a full disk be told.
    BkmProcess process(argv, Environment("slow=0"), options_.folder / "output");
    if (!process.WaitFor(longest_)) Trouble(&TortureResult::lost, "a run does not end");
    if (process.exit_code() == 8) return absl::OkStatus();  // it could not be copied
    if (process.exit_code() != 0) {
      result_.not_possible["disk full"] =
          "nothing can be mounted here; only single writes find a full disk";
      result_.took_place.erase("disk full");
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(RemoveTree(out()));
    std::error_code error;
    fs::rename(saved, out(), error);
    return absl::OkStatus();
  }

  // False if there is nothing to damage.
  absl::StatusOr<bool> FlipBit(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(folder, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code ignored;
      if (it->is_regular_file(ignored) && !it->is_symlink(ignored) && it->file_size(ignored) > 0)
        files.push_back(it->path());
    }
    if (files.empty()) return false;
    std::sort(files.begin(), files.end());
    const fs::path& file = files[static_cast<size_t>(Toss(static_cast<int>(files.size())))];
    history_.back() += " in " + file.lexically_relative(options_.folder).string();
    ASSIGN_OR_RETURN(std::string content, ReadFile(file));
    content[random_() % content.size()] ^= static_cast<char>(1 << Toss(8));
    // In place: hard links share the damage.
    fs::permissions(file, fs::perms::owner_write, fs::perm_options::add, error);
    std::FILE* opened = std::fopen(file.c_str(), "r+b");
    if (opened == nullptr) return false;
    const size_t written = std::fwrite(content.data(), 1, content.size(), opened);
    return std::fclose(opened) == 0 && written == content.size();
  }

  // Records a run, and puts what a power cut at a random step may leave in its place. False if the
  // run wrote nothing after that step.
  absl::StatusOr<bool> PowerCut() {
    const fs::path journal = options_.folder / "journal";
    RETURN_IF_ERROR(RemoveTree(journal));
    RETURN_IF_ERROR(CreateDirectories(journal));
    CutDisk disk(out());
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(out(), error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code ignored;
      if (!it->is_regular_file(ignored) || it->is_symlink(ignored)) continue;
      if (absl::StatusOr<std::string> content = ReadFile(it->path()); content.ok())
        disk.AddSafe(it->path(), *std::move(content));
    }
    const Evidence before = EvidenceIn(out());
    KillDuring("journal=" + journal.string(),
               Toss(2) == 0 ? Kills{{Toss(usual_ms_), "runner"}} : Kills{});
    Compare(before, /*complete=*/false);
    const std::vector<JournalStep> steps = ParseJournal(ReadFile(journal / "journal").value_or(""));
    const int cut = Toss(static_cast<int>(steps.size()) + 1);
    for (int i = 0; i < cut; ++i) disk.Apply(steps[static_cast<size_t>(i)]);
    RETURN_IF_ERROR(Replace(disk.Safe()));
    const Evidence safe = EvidenceIn(out());
    RETURN_IF_ERROR(Replace(disk.Cut(random_)));
    if (Toss(3) == 0) RETURN_IF_ERROR(RemoveTree(cache() / "observations"));
    // What was safe must be there, and the next run must use it.
    Compare(safe, /*complete=*/false);
    KillDuring("", {});
    Compare(safe, /*complete=*/false);
    return cut < static_cast<int>(steps.size());
  }

  absl::Status Replace(const std::map<fs::path, std::string>& files) {
    RETURN_IF_ERROR(RemoveTree(out()));
    for (const auto& [path, content] : files) RETURN_IF_ERROR(WriteScratchFile(path, content));
    return absl::OkStatus();
  }

  const TortureOptions& options_;
  std::mt19937_64 random_;
  const Clock::time_point start_;
  fs::path matrix_;
  std::map<std::string, std::string> reference_;  // facts by cell id
  int usual_ms_ = 1000;                           // of an undisturbed run
  milliseconds longest_{120'000};                 // of a disturbed one
  std::vector<std::string> history_;              // disturbances of this round
  TortureResult result_;
};

}  // namespace

int TortureResult::kills() const {
  int total = 0;
  for (const auto& [role, count] : killed) total += count;
  return total;
}

std::vector<std::string> TortureResult::missing() const {
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : took_place) {
    if (count == 0) kinds.push_back(kind);
  }
  return kinds;
}

absl::StatusOr<TortureResult> Torture(const TortureOptions& options) {
  return Torturer(options).Run();
}

std::string TortureText(const TortureResult& result, uint64_t seed) {
  const auto list = [](const std::map<std::string, int>& counts) {
    return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
      absl::StrAppend(out, entry.first, " ", entry.second);
    });
  };
  std::string text;
  for (const std::string& trouble : result.troubles) absl::StrAppend(&text, trouble, "\n");
  absl::StrAppendFormat(&text, "%d rounds in %.0f s, seed %d\n", result.rounds, result.seconds,
                        seed);
  absl::StrAppend(&text, "killed: ", list(result.killed),
                  "\ndisturbed runs: ", list(result.disturbed),
                  "\nseen to take place: ", list(result.took_place), "\n");
  if (const std::vector<std::string> missing = result.missing(); !missing.empty())
    absl::StrAppend(&text, "never took place: ", absl::StrJoin(missing, ", "), "\n");
  for (const auto& [kind, why] : result.not_possible)
    absl::StrAppend(&text, "not possible: ", kind, ": ", why, "\n");
  if (result.left > 0) absl::StrAppend(&text, "left running: ", result.left, "\n");
  absl::StrAppendFormat(&text, "killed %d, lost %d, repeated %d, wrong %d\n", result.kills(),
                        result.lost, result.repeated, result.wrong);
  return text;
}

Json TortureJson(const TortureResult& result, uint64_t seed) {
  return {{"seed", seed},
          {"rounds", result.rounds},
          {"seconds", result.seconds},
          {"killed", result.kills()},
          {"killed_by_role", result.killed},
          {"disturbed", result.disturbed},
          {"took_place", result.took_place},
          {"not_possible", result.not_possible},
          {"lost", result.lost},
          {"repeated", result.repeated},
          {"wrong", result.wrong},
          {"left", result.left},
          {"troubles", result.troubles}};
}

}  // namespace bkm
