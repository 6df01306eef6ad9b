#include "fuzz/functor_build.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "fuzz/random.h"

extern char** environ;

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Where the headers and libraries of this tool lie.
struct Package {
  fs::path include, lib;
  bool complete() const {
    return fs::exists(include / "attn/fuzz/functor_main.h") && fs::exists(lib / "libattn_fuzz.a");
  }
};

/// Beside the running tool where it is installed, else in the build that it comes from.
Package package() {
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const Package& p : {Package{prefix / "include", prefix / ATTN_LIBRARY_FOLDER},
                           Package{ATTN_BUILD_INCLUDE, ATTN_BUILD_LIBRARIES}})
    if (p.complete()) return p;
  throw std::runtime_error(
      "a C++ type needs attnproof's headers and libraries, which are neither beside this tool nor "
      "where it was built");
}

Words compiler() {
  const char* chosen = std::getenv("CXX");
  const Words words = words_of(chosen ? chosen : "");
  return words.empty() ? Words{"c++"} : words;
}

/// A program that runs beside this one; its standard output goes to a file where one is named.
class Child {
 public:
  Child(const Words& command, const fs::path& output = {}) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (!output.empty())
      posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0644);
    const int error = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
      throw std::runtime_error(fmt::format(
          "'{}' cannot be run, expected a C++ compiler: set CXX to the name of one", argv[0]));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) succeeded();
  }
  bool succeeded() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_ = 0;
};

void check_type(const std::string& option, const std::string& file, const std::string& type) {
  if (file.empty() != type.empty())
    throw std::invalid_argument(
        fmt::format("--{0}-file, --{0}-type: '{1}', '{2}', expected both: "
                    "a header and the type that it defines",
                    option, file, type));
  constexpr const char* letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:<>, ";
  if (type.find_first_not_of(letters) != std::string::npos)
    throw std::invalid_argument(
        fmt::format("--{}-type: '{}', expected the name of a type, such as my::Mod", option, type));
  if (!file.empty() && !fs::is_regular_file(file))
    throw std::invalid_argument(
        fmt::format("--{}-file: '{}', expected a header that can be read", option, file));
  if (file.find_first_of("\"\n") != std::string::npos)
    throw std::invalid_argument(
        fmt::format("--{}-file: '{}', expected a name without quotes", option, file));
}

/// The two units: the kernels, and everything else with the main.
struct Sources {
  std::string kernels, main;
};
Sources sources_of(const TypeArguments& t) {
  std::string headers;
  for (const std::string& file : {t.mod_file, t.mask_file})
    if (!file.empty()) headers += fmt::format("#include \"{}\"\n", fs::canonical(file).string());
  const std::string mod = t.mod_type.empty() ? "attn::ProgramMod" : t.mod_type,
                    mask = t.mask_type.empty() ? "attn::ProgramMask" : t.mask_type;
  const auto part = [](const std::string& type, const char* expression) {
    return type.empty() ? fmt::format("attn::fuzz::{}", expression)
                        : fmt::format("attn::fuzz::OfType<{}>", type);
  };
  return {fmt::format("#include \"fuzz/functor_kernels.h\"\n{}"
                      "template std::string_view attn::warp::run_functors(\n"
                      "    const attn::AttentionArguments&, const attn::Implementation&,\n"
                      "    const {}&, const {}&);\n",
                      headers, mod, mask),
          fmt::format("#include \"fuzz/functor_main.h\"\n{}"
                      "int main(int argc, char** argv) {{\n"
                      "  return attn::fuzz::functor_main<{}, {}>(\n"
                      "      \"{}\", \"{}\", argc, argv);\n}}\n",
                      headers, part(t.mod_type, "ExpressionMod"),
                      part(t.mask_type, "ExpressionMask"), t.mod_type, t.mask_type)};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw std::runtime_error(fmt::format("'{}': cannot be written", path.string()));
}

fs::path cache_folder(const TypeArguments& t) {
  const char *xdg = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (!t.cache.empty()) return fs::absolute(t.cache);
  if (xdg && *xdg) return fs::path(xdg) / "attnproof";
  if (home && *home) return fs::path(home) / ".cache/attnproof";
  throw std::invalid_argument("--cache: none, and neither XDG_CACHE_HOME nor HOME is set");
}

/// A folder of its own while it is being worked in.
class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& parent) {
    fs::create_directories(parent);
    std::string name = (parent / "work-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw std::runtime_error(fmt::format("'{}': cannot be written", parent.string()));
    path = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  fs::path path;
};

class Build {
 public:
  Build(const TypeArguments& types, const fs::path& cache)
      : types_(types), package_(package()), work_(cache) {
    common_ = compiler();
    for (const char* flag : {"-std=c++20", "-O1", "-ffp-contract=off", "-Wno-psabi"})
      common_.push_back(flag);
    for (const std::string& flag : words_of(ATTN_BUILD_FLAGS)) common_.push_back(flag);
    for (const std::string& folder : types.includes) common_.push_back("-I" + folder);
    common_.push_back("-I" + package_.include.string());
    common_.push_back("-I" + (package_.include / "attn").string());
    for (const std::string& folder : words_of(ATTN_BUILD_SYSTEM_INCLUDES))
      common_.insert(common_.end(), {"-isystem", folder});
    kernels_ = common_;
    for (const std::string& flag : words_of(ATTN_ENGINE_FLAGS)) kernels_.push_back(flag);
    kernels_.insert(kernels_.end(), {"-DATTN_ENGINE_WARP", "-DATTN_LARGEST_HEAD=64"});
    const Sources sources = sources_of(types);
    write(work_.path / "kernels.cc", sources.kernels);
    write(work_.path / "main.cc", sources.main);
  }

  /// A name for the program: of all that it is made of.
  std::string key() const {
    Words command = common_;
    const fs::path text = work_.path / "main.ii";
    command.insert(command.end(), {"-E", "-P", (work_.path / "main.cc").string()});
    if (!Child(command, text).succeeded()) refuse();
    std::ifstream file(text);
    std::string all((std::istreambuf_iterator<char>(file)), {});
    all += fmt::format("{}", fmt::join(kernels_, "\n"));
    for (const std::string& library : libraries())
      if (fs::exists(library))
        all += fmt::format("\n{} {}", fs::file_size(library),
                           fs::last_write_time(library).time_since_epoch().count());
    return fmt::format("{:016x}{:016x}", hash_of_text(all), hash_of_text(all + '.'));
  }

  void run(const fs::path& result) const {
    fmt::print(stderr, "compiling {}{}{}: a minute or less, once\n", types_.mod_type,
               types_.mod_type.empty() || types_.mask_type.empty() ? "" : " and ",
               types_.mask_type);
    {
      Child kernels(compilation(kernels_, "kernels")), main(compilation(common_, "main"));
      const bool both[] = {kernels.succeeded(), main.succeeded()};
      if (!both[0] || !both[1]) refuse();
    }
    const fs::path program = work_.path / "attnproof";
    Words link = common_;
    link.insert(link.end(), {"-o", program.string(), object("main"), object("kernels")});
    for (const std::string& library : libraries()) link.push_back(library);
    link.push_back("-pthread");
    if (!Child(link).succeeded())
      throw std::runtime_error("a C++ type: linking failed, as the linker says above");
    fs::create_directories(result.parent_path());
    fs::rename(program, result);
  }

 private:
  std::string object(const std::string& unit) const {
    return (work_.path / (unit + ".o")).string();
  }
  Words compilation(Words command, const std::string& unit) const {
    command.insert(command.end(),
                   {"-c", (work_.path / (unit + ".cc")).string(), "-o", object(unit)});
    return command;
  }
  Words libraries() const {
    Words all;
    for (const char* name : {"fuzz", "kernels", "core"})
      all.push_back((package_.lib / fmt::format("libattn_{}.a", name)).string());
    for (const std::string& library : words_of(ATTN_BUILD_LINKS)) all.push_back(library);
    return all;
  }
  [[noreturn]] void refuse() const {
    constexpr const char* mod =
        "template <class Score, class Index> Score operator()(Score s, Index b, Index h, Index q, "
        "Index kv) const";
    constexpr const char* mask =
        "template <class Index> auto operator()(Index b, Index h, Index q, Index kv) const";
    std::string files, operators;
    const auto add = [&](const char* option, const std::string& file, const char* written) {
      if (file.empty()) return;
      files += fmt::format("{}{} {}", files.empty() ? "" : ", ", option, file);
      operators += fmt::format("{}{}", operators.empty() ? "" : " and ", written);
    };
    add("--mod-file", types_.mod_file, mod);
    add("--mask-file", types_.mask_file, mask);
    throw std::invalid_argument(
        fmt::format("{}: does not compile, as the compiler says above, expected a struct whose "
                    "operator is a template on the number types: {}",
                    files, operators));
  }

  const TypeArguments& types_;
  Package package_;
  WorkFolder work_;
  Words common_, kernels_;
};

}  // namespace

std::string built_tool(const TypeArguments& types) {
  check_type("mod", types.mod_file, types.mod_type);
  check_type("mask", types.mask_file, types.mask_type);
  const fs::path cache = cache_folder(types);
  try {
    const Build build(types, cache);
    const fs::path program = cache / build.key() / "attnproof";
    if (!fs::exists(program)) build.run(program);
    return program.string();
  } catch (const fs::filesystem_error& error) {
    throw std::runtime_error(fmt::format("--cache: {}", error.what()));
  }
}

void become_built_tool(const TypeArguments& types, char** argv) {
  const std::string program = built_tool(types);
  execv(program.c_str(), argv);
  throw std::runtime_error(fmt::format("'{}': cannot be run", program));
}

}  // namespace attn::fuzz
