#include "fuzz/tool.h"

int main(int argc, char** argv) { return attn::fuzz::tool_main(argc, argv); }
