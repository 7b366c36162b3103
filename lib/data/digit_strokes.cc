#include <array>

#include "data/synthetic_digits.h"

namespace halfstep::data {
namespace {

// clang-format off
constexpr std::array k_zero{Point{.50F, .11F}, Point{.30F, .20F}, Point{.24F, .50F}, Point{.31F, .80F},
                            Point{.50F, .89F}, Point{.70F, .79F}, Point{.76F, .50F}, Point{.69F, .20F},
                            Point{.49F, .11F}};
constexpr std::array k_zero_bar{Point{.66F, .24F}, Point{.34F, .76F}};

constexpr std::array k_one{Point{.50F, .11F}, Point{.50F, .89F}};
constexpr std::array k_one_flag{Point{.34F, .30F}, Point{.53F, .11F}, Point{.53F, .89F}};
constexpr std::array k_one_foot{Point{.36F, .89F}, Point{.70F, .89F}};

constexpr std::array k_two_top{Point{.27F, .32F}, Point{.33F, .16F}, Point{.52F, .11F}, Point{.71F, .22F},
                               Point{.68F, .42F}, Point{.48F, .64F}, Point{.26F, .88F}};
constexpr std::array k_two_foot{Point{.26F, .88F}, Point{.76F, .88F}};
constexpr std::array k_two_looped{Point{.28F, .28F}, Point{.38F, .13F}, Point{.62F, .13F}, Point{.70F, .32F},
                                  Point{.56F, .58F}, Point{.36F, .84F}, Point{.25F, .80F}, Point{.34F, .70F},
                                  Point{.54F, .82F}, Point{.77F, .86F}};

constexpr std::array k_three_top{Point{.28F, .21F}, Point{.44F, .11F}, Point{.66F, .17F}, Point{.69F, .33F},
                                 Point{.46F, .46F}};
constexpr std::array k_three_bottom{Point{.46F, .46F}, Point{.70F, .54F}, Point{.74F, .73F}, Point{.54F, .89F},
                                    Point{.26F, .80F}};
constexpr std::array k_three_flat{Point{.28F, .13F}, Point{.71F, .13F}, Point{.46F, .43F}};
constexpr std::array k_three_round{Point{.46F, .43F}, Point{.70F, .50F}, Point{.75F, .70F}, Point{.55F, .89F},
                                   Point{.26F, .82F}};

constexpr std::array k_four_side{Point{.58F, .11F}, Point{.24F, .62F}, Point{.79F, .62F}};
constexpr std::array k_four_stem{Point{.60F, .11F}, Point{.60F, .90F}};
constexpr std::array k_four_open{Point{.31F, .12F}, Point{.27F, .52F}, Point{.74F, .52F}};
constexpr std::array k_four_open_stem{Point{.70F, .12F}, Point{.66F, .90F}};

constexpr std::array k_five_top{Point{.71F, .13F}, Point{.35F, .13F}, Point{.31F, .45F}};
constexpr std::array k_five_bowl{Point{.31F, .45F}, Point{.50F, .38F}, Point{.71F, .48F}, Point{.73F, .69F},
                                 Point{.55F, .88F}, Point{.26F, .81F}};

constexpr std::array k_six{Point{.66F, .13F}, Point{.44F, .24F}, Point{.29F, .50F}, Point{.30F, .77F},
                           Point{.50F, .89F}, Point{.70F, .76F}, Point{.67F, .57F}, Point{.48F, .51F},
                           Point{.31F, .65F}};

constexpr std::array k_seven{Point{.25F, .14F}, Point{.75F, .14F}, Point{.44F, .89F}};
constexpr std::array k_seven_bent{Point{.73F, .14F}, Point{.60F, .42F}, Point{.50F, .89F}};
constexpr std::array k_seven_roof{Point{.26F, .17F}, Point{.73F, .14F}};
constexpr std::array k_seven_bar{Point{.38F, .52F}, Point{.72F, .50F}};

constexpr std::array k_eight{Point{.52F, .48F}, Point{.32F, .36F}, Point{.32F, .19F}, Point{.50F, .11F},
                             Point{.68F, .19F}, Point{.67F, .35F}, Point{.48F, .48F}, Point{.28F, .61F},
                             Point{.27F, .79F}, Point{.50F, .89F}, Point{.73F, .79F}, Point{.71F, .61F},
                             Point{.50F, .47F}};

constexpr std::array k_nine{Point{.69F, .33F}, Point{.52F, .49F}, Point{.32F, .41F}, Point{.31F, .22F},
                            Point{.50F, .11F}, Point{.68F, .19F}, Point{.70F, .36F}, Point{.68F, .62F},
                            Point{.56F, .89F}};
constexpr std::array k_nine_bowl{Point{.70F, .28F}, Point{.54F, .47F}, Point{.33F, .41F}, Point{.32F, .20F},
                                 Point{.52F, .11F}, Point{.69F, .19F}, Point{.70F, .28F}};
constexpr std::array k_nine_stem{Point{.70F, .16F}, Point{.69F, .90F}};

constexpr std::array k_plain_zero{Stroke{k_zero, true}};
constexpr std::array k_barred_zero{Stroke{k_zero, true}, Stroke{k_zero_bar}};
constexpr std::array k_plain_one{Stroke{k_one}};
constexpr std::array k_flag_one{Stroke{k_one_flag}};
constexpr std::array k_foot_one{Stroke{k_one_flag}, Stroke{k_one_foot}};
constexpr std::array k_plain_two{Stroke{k_two_top, true}, Stroke{k_two_foot}};
constexpr std::array k_loop_two{Stroke{k_two_looped, true}};
constexpr std::array k_plain_three{Stroke{k_three_top, true}, Stroke{k_three_bottom, true}};
constexpr std::array k_flat_three{Stroke{k_three_flat}, Stroke{k_three_round, true}};
constexpr std::array k_plain_four{Stroke{k_four_side}, Stroke{k_four_stem}};
constexpr std::array k_open_four{Stroke{k_four_open}, Stroke{k_four_open_stem}};
constexpr std::array k_plain_five{Stroke{k_five_top}, Stroke{k_five_bowl, true}};
constexpr std::array k_plain_six{Stroke{k_six, true}};
constexpr std::array k_plain_seven{Stroke{k_seven}};
constexpr std::array k_bent_seven{Stroke{k_seven_roof}, Stroke{k_seven_bent, true}};
constexpr std::array k_barred_seven{Stroke{k_seven}, Stroke{k_seven_bar}};
constexpr std::array k_plain_eight{Stroke{k_eight, true}};
constexpr std::array k_plain_nine{Stroke{k_nine, true}};
constexpr std::array k_stem_nine{Stroke{k_nine_bowl, true}, Stroke{k_nine_stem}};
// clang-format on

constexpr std::array k_glyphs{
    Glyph{0, k_plain_zero},   Glyph{0, k_barred_zero}, Glyph{1, k_plain_one},
    Glyph{1, k_flag_one},     Glyph{1, k_foot_one},    Glyph{2, k_plain_two},
    Glyph{2, k_loop_two},     Glyph{3, k_plain_three}, Glyph{3, k_flat_three},
    Glyph{4, k_plain_four},   Glyph{4, k_open_four},   Glyph{5, k_plain_five},
    Glyph{6, k_plain_six},    Glyph{7, k_plain_seven}, Glyph{7, k_bent_seven},
    Glyph{7, k_barred_seven}, Glyph{8, k_plain_eight}, Glyph{9, k_plain_nine},
    Glyph{9, k_stem_nine},
};

}  // namespace

std::span<const Glyph> glyphs() { return k_glyphs; }

}  // namespace halfstep::data
