#pragma once

#include <string>

#include "fuzz/report_page.h"

namespace attn::fuzz {

/// One self-contained document, below 1 MB: no script, no font, no picture from elsewhere. Planes
/// of more than 96 rows or columns are reduced by maximum, and those that do not fit are counted.
std::string to_html(const ReportPage& page);

}  // namespace attn::fuzz
