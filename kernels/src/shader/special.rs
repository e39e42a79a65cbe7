//! Functions of the gamma family, in single precision.

use super::math::{ShaderFunction, binary, unary};

/// Each after those it calls; they call functions of [`super::math`] and [`super::angle`].
pub(super) const FUNCTIONS: &[ShaderFunction] = &[
    // ln Γ(2 + z) for |z| ≤ ½: (1 - γ) z + Σ (-1)ᵏ (ζ(k) - 1) zᵏ / k.
    ShaderFunction {
        name: "lgamma_part_",
        args: &[("z", "f32")],
        result: "f32",
        body: "return z * (0.422784335f + z * (0.322467033f + z * (-0.0673523011f + z * (0.0205808084f + z * (-0.00738555103f + z * (0.00289051033f + z * (-0.00119275391f + z * (0.000509669525f + z * (-0.000223154758f + z * (9.94575128e-05f + z * (-4.49262367e-05f + z * (2.05072128e-05f + z * (-9.43948828e-06f + z * 4.37486679e-06f)))))))))))));\n",
    },
    // Of positive numbers: down to [1½, 2½] by the recurrence, from 8 on by Stirling's series.
    unary(
        "lgamma_positive_",
        "if (x < 0.5f) { return lgamma_part_(x) - log_(x) - log1p_(x); }\n\
         if (x < 1.5f) { return lgamma_part_(x - 1.0f) - log1p_(x - 1.0f); }\n\
         if (x < 8.0f) {\nvar rest = x;\nvar product = 1.0f;\n\
         for (var i = 0u; i < 8u; i++) {\nif (rest <= 2.5f) { break; }\n\
         rest = rest - 1.0f;\nproduct = product * rest;\n}\n\
         return log_(product) + lgamma_part_(rest - 2.0f);\n}\n\
         let r = 1.0f / x;\nlet s = r * r;\n\
         return (x - 0.5f) * (log_(x) - 1.0f) + (0.418938533f + r * (0.0833333333f + s * (-0.00277777778f + s * 7.93650794e-4f)));\n",
    ),
    // Negative numbers by reflection; the sine is that of what is beyond a whole number.
    unary(
        "lgamma_",
        "if (is_nan_(x)) { return x; }\n\
         if ((to_bits(x) & 0x7fffffffu) == 0x7f800000u) { return of_bits(0x7f800000u); }\n\
         if (x > 0.0f) { return lgamma_positive_(x); }\nlet beyond = abs(x - round(x));\n\
         if (beyond == 0.0f) { return of_bits(0x7f800000u); }\n\
         if (x > -1.0e-5f) { return -log_(-x); }\n\
         return 1.14472989f - log_(-x * sin_(beyond * 3.14159265f)) - lgamma_positive_(-x);\n",
    ),
    // x^a e^-x / Γ(a + 1); for large a by Stirling's series (DLMF 5.11.1).
    ShaderFunction {
        name: "gamma_weight_",
        args: &[("a", "f32"), ("x", "f32")],
        result: "f32",
        body: "if (a < 8.0f) { return exp_(a * log_(x) - x - lgamma_positive_(a + 1.0f)); }\n\
               if (a > 1.0e16f) { return 0.0f; }\n\
               let distance = (x - a) / a;\nlet correction = (0.0833333333f - 0.00277777778f / (a * a)) / a;\n\
               var part = log1p_(distance) - distance;\n\
               if (abs(distance) < 0.1f) {\n\
               part = distance * distance * (-0.5f + distance * (0.333333333f + distance * (-0.25f + distance * (0.2f + distance * (-0.166666667f + distance * 0.142857143f)))));\n}\n\
               return exp_(a * part - correction) / sqrt(6.28318531f * a);\n",
    },
    // The lower incomplete gamma function by its power series (DLMF 8.11.4).
    ShaderFunction {
        name: "igamma_series_",
        args: &[("a", "f32"), ("x", "f32")],
        result: "f32",
        body: "var sum = 1.0f;\nvar term = 1.0f;\nvar divisor = a;\n\
               for (var i = 0u; i < 2000u; i++) {\ndivisor = divisor + 1.0f;\n\
               term = term * x / divisor;\nsum = sum + term;\nif (term < sum * 3.0e-8f) { break; }\n}\n\
               return sum * gamma_weight_(a, x);\n",
    },
    // The upper one by its continued fraction (DLMF 8.9.2), evaluated from the front (Lentz 1976).
    ShaderFunction {
        name: "igammac_fraction_",
        args: &[("a", "f32"), ("x", "f32")],
        result: "f32",
        body: "let weight = gamma_weight_(a, x);\nif (weight == 0.0f) { return 0.0f; }\n\
               var b = x + 1.0f - a;\nvar c = 1.0e30f;\nvar d = 1.0f / b;\nvar h = d;\n\
               for (var i = 1u; i < 2000u; i++) {\nlet k = f32(i);\nlet an = k * (a - k);\n\
               b = b + 2.0f;\nd = an * d + b;\nif (abs(d) < 1.0e-30f) { d = 1.0e-30f; }\n\
               c = b + an / c;\nif (abs(c) < 1.0e-30f) { c = 1.0e-30f; }\n\
               d = 1.0f / d;\nlet step = d * c;\nh = h * step;\nif (abs(step - 1.0f) < 1.2e-7f) { break; }\n}\n\
               return h * a * weight;\n",
    },
    binary(
        "igamma_",
        "if (is_nan_(x) || is_nan_(y) || y < 0.0f || !(x > 0.0f)) {\n\
         return select(of_bits(0x7fc00000u), 0.0f, y == 0.0f);\n}\n\
         if (y == 0.0f || to_bits(x) == 0x7f800000u) { return 0.0f; }\n\
         if (y > 1.0f && y > x) {\nif (to_bits(y) == 0x7f800000u) { return 1.0f; }\n\
         return 1.0f - igammac_fraction_(x, y);\n}\nreturn igamma_series_(x, y);\n",
    ),
    binary(
        "igammac_",
        "if (is_nan_(x) || is_nan_(y) || y < 0.0f || !(x > 0.0f)) { return of_bits(0x7fc00000u); }\n\
         if (to_bits(y) == 0x7f800000u) { return 0.0f; }\n\
         if (y == 0.0f || to_bits(x) == 0x7f800000u) { return 1.0f; }\n\
         if (y < 1.0f || y < x) { return 1.0f - igamma_series_(x, y); }\nreturn igammac_fraction_(x, y);\n",
    ),
    // (2k)! / B₂ₖ.
    ShaderFunction {
        name: "zeta_factor_",
        args: &[("i", "u32")],
        result: "f32",
        body: "if (i == 0u) { return 12.0f; }\nif (i == 1u) { return -720.0f; }\n\
               if (i == 2u) { return 30240.0f; }\nif (i == 3u) { return -1209600.0f; }\n\
               if (i == 4u) { return 47900160.0f; }\nif (i == 5u) { return -1.89243758e9f; }\n\
               return 7.472426496e10f;\n",
    },
    // The Hurwitz zeta function by the Euler-Maclaurin formula (DLMF 25.11.5).
    binary(
        "zeta_",
        "if (x == 1.0f) { return of_bits(0x7f800000u); }\n\
         let whole = y == floor(y);\nlet whole_power = x == floor(x);\n\
         if (!(x > 1.0f) || is_nan_(y) || (y <= 0.0f && !whole && !whole_power)) { return of_bits(0x7fc00000u); }\n\
         if (y <= 0.0f && whole) {\n\
         let even = whole_power && 2.0f * floor(0.5f * x) == x;\n\
         return select(of_bits(0x7fc00000u), of_bits(0x7f800000u), even);\n}\n\
         if (to_bits(x) == 0x7f800000u) { return select(pow_(y, -x), of_bits(0x7f800000u), y < 1.0f); }\n\
         var sum = pow_(y, -x);\nvar base = y;\nvar term = 0.0f;\n\
         for (var i = 0u; i < 2000u; i++) {\nif (i >= 9u && base > 9.0f) { break; }\n\
         base = base + 1.0f;\nterm = pow_(base, -x);\nsum = sum + term;\n\
         if (abs(term) < abs(sum) * 3.0e-8f) { return sum; }\n}\n\
         if (term == 0.0f) { return sum; }\n\
         sum = sum + (term * base / (x - 1.0f) - 0.5f * term);\nvar rising = 1.0f;\n\
         for (var i = 0u; i < 7u; i++) {\nlet order = 2.0f * f32(i);\nrising = rising * (x + order);\n\
         term = term / base;\nlet correction = rising * term / zeta_factor_(i);\nsum = sum + correction;\n\
         if (abs(correction) < abs(sum) * 3.0e-8f) { break; }\n\
         rising = rising * (x + order + 1.0f);\nterm = term / base;\n}\nreturn sum;\n",
    ),
];
