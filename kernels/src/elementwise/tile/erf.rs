//! The error function.

use super::{
    lanes::Lanes,
    math::{abs, polynomial, with_sign},
};

/// By a polynomial around the nearest eighth where vectors look numbers up in a table, else by a quotient
/// of polynomials. The two differ by a few units in the last place.
#[inline(always)]
pub(super) fn erf<V: Lanes>(x: V) -> V {
    if V::LOOKS_UP { erf_by_table(x) } else { erf_by_quotient(x) }
}

/// From here on the nearest float is 1, in eighths.
const LIMIT: f32 = 31.499;

/// Added to a number, it leaves the nearest integer in the lowest bits of the sum.
const SHIFT: f32 = 12_582_912.0;

#[inline(always)]
fn erf_by_table<V: Lanes>(x: V) -> V {
    // Operands in this order let NaN through.
    let eighths = x.fill(LIMIT).min_or(abs(x).times(x.fill(8.0)));
    let shifted = eighths.plus(x.fill(SHIFT));
    let rest = eighths.minus(shifted.minus(x.fill(SHIFT)));
    let mut sum = shifted.look_up(&AROUND_EIGHTHS[0]);
    for coefficients in &AROUND_EIGHTHS[1..] {
        sum = sum.times_plus(rest, shifted.look_up(coefficients));
    }
    with_sign(sum, x)
}

#[inline(always)]
fn erf_by_quotient<V: Lanes>(x: V) -> V {
    // Here the quotient is larger than 1 by more than its error.
    let c = x.fill(-4.1).max_or(x.fill(4.1).min_or(x));
    let square = c.times(c);
    let p = polynomial(
        square,
        [
            -2.726_142_3e-10,
            2.770_681_4e-8,
            -2.101_024e-6,
            -5.692_506_4e-5,
            -7.349_906e-4,
            -2.954_599_8e-3,
            -1.609_603_4e-2,
        ],
    );
    let q = polynomial(
        square,
        [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2],
    );
    let result = c.times(p).over_near(q);
    let one = x.fill(1.0);
    let result = one.is_lt(abs(result)).choose(with_sign(one, x), result);
    // Rests of tiny quotients are not normal numbers; there the series has one term.
    let slope = x.times(x.fill(std::f32::consts::FRAC_2_SQRT_PI));
    abs(x).is_lt(x.fill(1e-15)).choose(slope, result)
}

/// For each eighth from 0 to 31 the coefficients of a polynomial in the distance from it, in eighths too:
/// those of the fourth power first. They are fitted to the least relative error, which is 5e-8 before
/// rounding.
const AROUND_EIGHTHS: [[f32; 32]; 5] = [
    [
        3.439_736_2e-6,
        1.631_393e-5,
        3.078_440_2e-5,
        4.053_301e-5,
        4.460_811_8e-5,
        4.302_805e-5,
        3.676_692_7e-5,
        2.744_471_6e-5,
        1.691_470_4e-5,
        6.865_805_5e-6,
        -1.462_464_6e-6,
        -7.406_845_7e-6,
        -1.085_527_6e-5,
        -1.211_436_8e-5,
        -1.172_891_2e-5,
        -1.031_067_6e-5,
        -8.408_769e-6,
        -6.438_852_3e-6,
        -4.663_905_7e-6,
        -3.211_560_4e-6,
        -2.109_747_6e-6,
        -1.325_601_7e-6,
        -7.982_060_3e-7,
        -4.613_186_5e-7,
        -2.562_132e-7,
        -1.368_825_3e-7,
        -7.040_38e-8,
        -3.488_551_7e-8,
        -1.666_276e-8,
        -7.675_694e-9,
        -3.411_432_5e-9,
        -1.463_495_7e-9,
    ],
    [
        -7.356_968_7e-4,
        -6.996_532_3e-4,
        -6.030_889_3e-4,
        -4.583_099_5e-4,
        -2.859_928_6e-4,
        -1.089_950_4e-4,
        5.181_466_6e-5,
        1.808_509_4e-4,
        2.695_929e-4,
        3.167_051_5e-4,
        3.267_684_7e-4,
        3.081_801e-4,
        2.708_580_6e-4,
        2.242_776_4e-4,
        1.761_513_7e-4,
        1.318_300_2e-4,
        9.431_019e-5,
        6.464_529e-5,
        4.253_239_6e-5,
        2.689_716_5e-5,
        1.636_713_6e-5,
        9.591_87e-6,
        5.417_694e-6,
        2.951_002_2e-6,
        1.550_923_1e-6,
        7.868_020_5e-7,
        3.854_404_4e-7,
        1.823_921_3e-7,
        8.339_391e-8,
        3.685_102e-8,
        1.574_149_9e-8,
        6.501_445e-9,
    ],
    [
        1.076_757_6e-7,
        -2.169_587_9e-3,
        -4.140_635e-3,
        -5.744_232e-3,
        -6.865_477_7e-3,
        -7.456_046e-3,
        -7.534_349e-3,
        -7.174_252e-3,
        -6.486_059_6e-3,
        -5.594_665e-3,
        -4.619_559e-3,
        -3.660_078_2e-3,
        -2.787_432_6e-3,
        -2.043_243_7e-3,
        -1.443_068e-3,
        -9.827_887e-4,
        -6.458_433_3e-4,
        -4.097_534_4e-4,
        -2.510_966e-4,
        -1.486_772_8e-4,
        -8.508_868_6e-5,
        -4.708_038e-5,
        -2.519_127_9e-5,
        -1.303_737_7e-5,
        -6.527_343_4e-6,
        -3.161_957_2e-6,
        -1.482_204e-6,
        -6.724_266e-7,
        -2.952_660_3e-7,
        -1.255_034_2e-7,
        -5.164_267_6e-8,
        -2.057_342_4e-8,
    ],
    [
        0.141_047_39,
        0.138_860_6,
        0.132_501_72,
        0.122_544_07,
        0.109_847_82,
        9.543_746e-2,
        8.036_642e-2,
        6.559_317e-2,
        5.188_847_7e-2,
        3.978_428_2e-2,
        2.956_516_9e-2,
        2.129_499e-2,
        1.486_629_5e-2,
        1.005_903_35e-2,
        6.596_870_7e-3,
        4.193_221_7e-3,
        2.583_365_4e-3,
        1.542_595_1e-3,
        8.927_835e-4,
        5.008_047_4e-4,
        2.722_818_8e-4,
        1.434_818_7e-4,
        7.328_301e-5,
        3.627_751_4e-5,
        1.740_602_4e-5,
        8.094_491e-6,
        3.648_440_5e-6,
        1.593_869_7e-6,
        6.748_792_3e-7,
        2.769_663_2e-7,
        1.101_680_24e-7,
        4.247_287_7e-8,
    ],
    [
        0.0,
        0.140_316_2,
        0.276_326_4,
        0.404_116_9,
        0.520_499_9,
        0.623_240_9,
        0.711_155_65,
        0.784_075_1,
        0.842_700_8,
        0.888_388_2,
        0.922_900_14,
        0.948_170_07,
        0.966_105_16,
        0.978_443_74,
        0.986_671_7,
        0.991_990_03,
        0.995_322_3,
        0.997_346,
        0.998_537_3,
        0.999_217_03,
        0.999_593,
        0.999_794_6,
        0.999_899_4,
        0.999_952_14,
        0.999_977_9,
        0.999_990_1,
        0.999_995_7,
        0.999_998_2,
        0.999_999_3,
        0.999_999_7,
        0.999_999_9,
        1.0,
    ],
];

#[cfg(test)]
mod tests {
    use super::{
        super::lanes::{Array, for_each_vector, of},
        *,
    };

    fn check<V: Lanes>() {
        if V::detected() {
            check_way::<V>(erf_by_quotient);
            check_way::<V>(erf_by_table);
        }
    }

    fn check_way<V: Lanes>(erf: impl Fn(V) -> V) {
        for x in (0..=45_000).map(|step| step as f32 * 1e-4).chain([1e-3, 1e-10, 1e-37]) {
            let (found, exact) = (of(x, &erf), libm::erf(f64::from(x)));
            let unit = f64::from((exact as f32).next_up() - exact as f32);
            let units = if V::FUSES { 6.0 } else { 8.0 };
            assert!((f64::from(found) - exact).abs() <= units * unit, "erf({x}) = {found}");
            assert!(found <= 1.0, "erf({x}) = {found}");
            assert_eq!(of(-x, &erf).to_bits(), (-found).to_bits(), "erf(-{x})");
        }
        for x in [3.95, 100.0, f32::INFINITY] {
            assert!((1.0 - of(x, &erf)).abs() <= 3.0 * f32::EPSILON, "erf({x})");
        }
        assert!(of(f32::NAN, &erf).is_nan());
    }

    #[test]
    fn both_ways_are_accurate() {
        for_each_vector!(check);
    }
}
