#include "fuzz/fuzz_record.h"

#include <fmt/format.h>

#include <algorithm>

namespace attn::fuzz {
namespace {

bool all_right(const std::vector<Checked>& checked) {
  return std::all_of(checked.begin(), checked.end(),
                     [](const Checked& c) { return c.failure.empty(); });
}

std::uint64_t count_of(const CampaignResult& r, Outcome o) {
  const auto found = r.outcomes.find(o);
  return found == r.outcomes.end() ? 0 : found->second;
}

std::string report_of(const Failure& f) {
  return report(f.shrunk, f.verdict) + fmt::format("shrunk from  '{}'\n", to_text(f.original));
}

/// The rows that were drawn, each with what failed in it.
std::vector<Checked> rows_of(const CampaignResult& r) {
  std::vector<Checked> rows;
  for (const auto& [name, cases] : r.coverage.at("implementation")) {
    const bool failed = r.failure && r.failure->original.implementation == name;
    if (cases > 0 || failed) rows.push_back({name, failed ? report_of(*r.failure) : ""});
  }
  return rows;
}

/// Text and attribute values of XML 1.0, which has no other control characters.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
    }
  return out;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string suite(const std::string& name, const std::vector<Checked>& checked,
                  const std::string& properties = {}) {
  const auto failures = std::count_if(checked.begin(), checked.end(),
                                      [](const Checked& c) { return !c.failure.empty(); });
  std::string xml = fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{}", name,
                                checked.size(), failures, properties);
  for (const Checked& c : checked) {
    xml +=
        fmt::format("    <testcase classname=\"attnproof.{}\" name=\"{}\"", name, escaped(c.name));
    xml += c.failure.empty()
               ? "/>\n"
               : fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                             escaped(first_line(c.failure)), escaped(c.failure));
  }
  return xml + "  </testsuite>\n";
}

}  // namespace

bool FuzzRecord::is_clean() const {
  return all_right(corpus) && all_right(whole) && !campaign.failure;
}

nlohmann::json to_json(const FuzzRecord& record) {
  const CampaignResult& r = record.campaign;
  nlohmann::json j;
  if (!record.examination.is_null()) j["examination"] = record.examination;
  std::uint64_t failed = 0;
  for (const auto& [outcome, n] : r.outcomes) failed += is_failure(outcome) ? n : 0;
  j["clean"] = record.is_clean();
  j["cases"] = r.cases;
  j["failed"] = failed;
  j["mistrusted"] = count_of(r, Outcome::mistrusted);
  j["refused"] = count_of(r, Outcome::refused);
  j["cases_per_second"] = r.cases_per_second();
  j["seconds"] = r.seconds;
  j["seed"] = record.seed;
  j["shard"] = {{"index", record.shard.index + 1}, {"count", record.shard.count}};
  j["implementations"] = nlohmann::json::array();
  for (const auto& [name, cases] : r.coverage.at("implementation"))
    if (cases > 0)
      j["implementations"].push_back(
          {{"name", name}, {"engine", record.engine}, {"device", "cpu"}, {"cases", cases}});
  j["coverage"] = r.coverage;
  j["reasons"] = nlohmann::json::array();  // why it fails, but for the case
  for (const std::vector<Checked>* checked : {&record.corpus, &record.whole})
    for (const Checked& c : *checked)
      if (!c.failure.empty()) j["reasons"].push_back({{"name", c.name}, {"report", c.failure}});
  if (r.failure)
    j["failure"] = {{"outcome", name_of(r.failure->verdict.outcome)},
                    {"index", r.failure->index},
                    {"replay", to_text(r.failure->shrunk)},
                    {"original", to_text(r.failure->original)},
                    {"report", report(r.failure->shrunk, r.failure->verdict)}};
  return j;
}

std::string to_junit(const FuzzRecord& record) {
  const CampaignResult& r = record.campaign;
  std::string properties = "    <properties>\n";
  const auto property = [&](const char* name, const auto& value) {
    properties += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, value);
  };
  property("seed", record.seed);
  property("shard", fmt::format("{}/{}", record.shard.index + 1, record.shard.count));
  property("engine", escaped(record.engine));
  property("cases", r.cases);
  property("seconds", r.seconds);
  property("mistrusted", count_of(r, Outcome::mistrusted));
  property("refused", count_of(r, Outcome::refused));
  properties += "    </properties>\n";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attnproof fuzz\">\n" +
         suite("corpus", record.corpus) + suite("campaign", rows_of(r), properties) +
         suite("whole", record.whole) + "</testsuites>\n";
}

}  // namespace attn::fuzz
