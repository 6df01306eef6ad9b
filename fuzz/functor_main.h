#pragma once

#include <fmt/format.h>

#include "fuzz/bind_tables.h"
#include "fuzz/functors.h"
#include "fuzz/tool.h"
#include "mods/lang/compile.h"

/// The tool with a mod and a mask of the user's built in: `functor_main` is the main of the program
/// that fuzz/functor_build.cc writes and compiles.
namespace attn {
namespace warp {
/// In the unit of kernels (fuzz/functor_kernels.h).
template <class Mod, class Mask>
std::string_view run_functors(const AttentionArguments& call, const Implementation& row,
                              const Mod& mod, const Mask& mask);
}  // namespace warp

namespace fuzz {

/// Stands for "an expression": the mod or mask that is not a type of the user's.
struct ExpressionMod {
  using Host = TreeMod;       ///< what the reference and the oracle run
  using Kernel = ProgramMod;  ///< what the kernels run
};
/// The same of a mask.
struct ExpressionMask {
  using Host = TreeMask;       ///< what the reference and the oracle run
  using Kernel = ProgramMask;  ///< what the kernels run
};
/// Of the user's type: one functor everywhere.
template <class F>
struct OfType {
  using Host = F;    ///< the functor itself
  using Kernel = F;  ///< the same: one functor everywhere
};

/// The functors of one case and the kernels that were compiled with them.
template <class Mod, class Mask>
class FunctorsOfTypes final : public TypedFunctors<typename Mod::Host, typename Mask::Host> {
 public:
  using TypedFunctors<typename Mod::Host, typename Mask::Host>::TypedFunctors;
  std::string_view run(const Implementation& row, const AttentionCall& call,
                       Engine engine) const override {
    if (engine != Engine::warp)
      throw std::invalid_argument(
          "--engine: thread, expected warp: a C++ type has kernels for that engine alone");
    return warp::run_functors<typename Mod::Kernel, typename Mask::Kernel>(
        call, row, of_kernel(this->mod_, call.mod), of_kernel(this->mask_, call.mask));
  }

 private:
  template <class Host, class Program>
  static const auto& of_kernel(const Host& functor, const Program& program) {
    if constexpr (std::is_same_v<Host, TreeMod> || std::is_same_v<Host, TreeMask>)
      return program;
    else
      return functor;
  }
};

/// The types of a program that was compiled with them: `ExpressionMod` or `OfType`,
/// `ExpressionMask` or `OfType`.
template <class Mod, class Mask>
class TypesOf final : public BuiltInTypes {
 public:
  /// Their names, as the user gave them; empty: an expression.
  TypesOf(std::string mod_type, std::string mask_type)
      : mod_type_(std::move(mod_type)), mask_type_(std::move(mask_type)) {}
  std::string mod_type() const override { return mod_type_; }
  std::string mask_type() const override { return mask_type_; }
  std::size_t tables() const override { return count<ModHost>() + count<MaskHost>(); }
  int largest_head() const override { return 64; }
  std::vector<std::string> rows() const override {
    std::vector<std::string> names;
    for (const Implementation& row : implementations()) {
      Problem fp16;
      fp16.d = fp16.dv = 1, fp16.dtype = DType::f16;
      if (!row.refusal(fp16)) names.emplace_back(row.name);
    }
    return names;
  }
  std::unique_ptr<Functors> functors(const Case& c, const Tables& tables) const override {
    return std::make_unique<FunctorsOfTypes<Mod, Mask>>(made_mod(c, tables), made_mask(c, tables));
  }

 private:
  using ModHost = typename Mod::Host;
  using MaskHost = typename Mask::Host;

  template <class F>
  static constexpr std::size_t count() {
    if constexpr (std::is_same_v<F, TreeMod> || std::is_same_v<F, TreeMask>)
      return 0;
    else
      return captured_count<F>;
  }
  static ModHost made_mod(const Case& c, const Tables& tables) {
    if constexpr (std::is_same_v<ModHost, TreeMod>)
      return TreeMod(c.mod, tables);
    else
      return bound_to_tables<ModHost>(tables, 0);
  }
  static MaskHost made_mask(const Case& c, const Tables& tables) {
    if constexpr (std::is_same_v<MaskHost, TreeMask>)
      return TreeMask(c.mask, tables);
    else
      return bound_to_tables<MaskHost>(tables, count<ModHost>());
  }

  std::string mod_type_, mask_type_;
};

/// The whole tool, with these types built in; an empty name: an expression.
template <class Mod, class Mask>
int functor_main(const std::string& mod_type, const std::string& mask_type, int argc, char** argv) {
  static const TypesOf<Mod, Mask> types(mod_type, mask_type);
  built_in_types() = &types;
  return tool_main(argc, argv);
}

}  // namespace fuzz
}  // namespace attn
