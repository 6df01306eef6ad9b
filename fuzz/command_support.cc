// What the commands share: reading arguments, writing files.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "fuzz/commands.h"

namespace attn::fuzz {

Engine parse_engine(const std::string& name) {
  for (const Engine e : {Engine::warp, Engine::thread})
    if (name == name_of(e)) return e;
  throw std::invalid_argument(fmt::format("--engine: '{}', expected warp or thread", name));
}

int jobs_or_cores(int jobs) {
  return jobs > 0 ? jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw std::invalid_argument(fmt::format("'{}': cannot be written", path));
}

PlantedFault parse_planted(const std::string& name) {
  if (name.empty()) return PlantedFault::none;
  for (const PlantedFaultInfo& fault : planted_faults)
    if (fault.name == name) return fault.fault;
  throw std::invalid_argument(
      fmt::format("--planted: '{}', expected a fault that 'attnproof faults' lists", name));
}

ReportPage failure_page(const Case& c, const RunOptions& options, const std::string& original) {
  return report_page(c, options, run_details(c, options), original);
}

void fix_shape(const std::string& text, Fixed& fixed) {
  struct Name {
    const char* name;
    std::optional<int> Fixed::*value;
  };
  constexpr Name names[] = {{"B", &Fixed::b},   {"Hq", &Fixed::hq},   {"Hkv", &Fixed::hkv},
                            {"Sq", &Fixed::sq}, {"Skv", &Fixed::skv}, {"Dv", &Fixed::dv},
                            {"D", &Fixed::d}};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    bool known = false;
    for (const Name& n : names) {
      const std::string digits =
          word.starts_with(n.name) ? word.substr(std::string(n.name).size()) : "";
      if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos ||
          digits.size() > 6)
        continue;
      fixed.*n.value = std::stoi(digits);
      known = true;
      break;
    }
    if (!known)
      throw std::invalid_argument(fmt::format(
          "--shape: '{}', expected words such as B2 Hq4 Hkv2 Sq64 Skv65 D64 Dv64", word));
  }
  if (fixed.d == 0) throw std::invalid_argument("--shape: D0, expected at least D1");
}

}  // namespace attn::fuzz
