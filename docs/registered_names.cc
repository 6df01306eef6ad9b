// Prints the name of every registered mask and mod, a line each: what the gallery is counted
// against.
#include <cstdio>

#include "masks/registry.h"
#include "mods/registry.h"

int main() {
  for (const auto& mask : attn::mask_registry()) std::printf("mask %s\n", mask.name.c_str());
  for (const auto& mod : attn::mod_registry()) std::printf("mod %s\n", mod.name.c_str());
}
