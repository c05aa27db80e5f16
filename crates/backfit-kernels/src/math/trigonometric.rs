//! Sine, cosine, tangent and the angle of a point, by way of f64.

use super::exponential::with_sign;

/// [`sin`], [`cos`] and [`tan`] hold below it; above, callers use the `libm` crate, which reduces any angle.
pub const LARGE_ANGLE: f32 = 268_435_456.0;

/// The multiple of π/2 that is nearest to x (modulo 4), and what is left.
#[inline(always)]
fn quarter(x: f32) -> (u64, f64) {
    let x = f64::from(x);
    let magic = 6_755_399_441_055_744.0f64;
    let t = x * std::f64::consts::FRAC_2_PI + magic;
    let n = t - magic;
    // π/2 in two parts; the first has 25 bits, so that its product with n is exact.
    let r = x - n * 1.570_796_310_901_641_8 - n * 1.589_325_477_352_819_6e-8;
    (t.to_bits() & 3, r)
}

/// sin r and cos r for |r| ≤ π/4, with an error of about 2^-37.
#[inline(always)]
fn sin_cos(r: f64) -> (f64, f64) {
    let z = r * r;
    let w = z * z;
    let s = z * r;
    let sin = (r + s * (-0.166_666_666_416_265_24 + z * 0.008_333_329_385_889_463))
        + s * w * (-0.000_198_393_348_360_966_32 + z * 2.718_311_493_989_822e-6);
    let cos = ((1.0 + z * -0.499_999_997_251_031) + w * 0.041_666_623_323_739_06)
        + (w * z) * (-0.001_388_676_377_460_993 + z * 2.439_044_879_627_742e-5);
    (sin, cos)
}

/// sin x for |x| < [`LARGE_ANGLE`]. Error ≤ 1 ulp.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (n, r) = quarter(x);
    let (sin, cos) = sin_cos(r);
    let value = if n & 1 == 0 { sin } else { cos };
    let value = if n & 2 == 0 { value } else { -value } as f32;
    let value = if x.abs() < 2e-4 { x } else { value };
    if x.abs() < f32::INFINITY { value } else { f32::NAN }
}

/// cos x for |x| < [`LARGE_ANGLE`]. Error ≤ 1 ulp.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (n, r) = quarter(x);
    let (sin, cos) = sin_cos(r);
    let value = if n & 1 == 0 { cos } else { sin };
    let value = if (n + 1) & 2 == 0 { value } else { -value } as f32;
    if x.abs() < f32::INFINITY { value } else { f32::NAN }
}

/// tan x for |x| < [`LARGE_ANGLE`]. Error ≤ 1 ulp.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (n, r) = quarter(x);
    let (sin, cos) = sin_cos(r);
    let even = n & 1 == 0;
    let quotient = if even { sin } else { -cos } / if even { cos } else { sin };
    let value = if x.abs() < 2e-4 { x } else { quotient as f32 };
    if x.abs() < f32::INFINITY { value } else { f32::NAN }
}

/// The angle of the point (x, y), with the special cases of C. Error ≤ 1 ulp.
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (a, b) = (f64::from(y.abs()), f64::from(x.abs()));
    let steep = a > b;
    let (small, large) = if steep { (b, a) } else { (a, b) };
    let t = small / large;
    let t = if large == 0.0 { 0.0 } else { t };
    let t = if small == f64::INFINITY { 1.0 } else { t };
    let far = t > 0.414_213_562_373_095;
    let u = if far { (t - 1.0) / (t + 1.0) } else { t };
    let z = u * u;
    let p = z * -8.750_608_600_031_904e-1 - 16.157_537_187_333_65;
    let p = p * z - 75.008_557_923_147_05;
    let p = p * z - 122.886_668_449_013_62;
    let p = p * z - 64.850_219_049_420_25;
    let q = z + 24.858_464_901_423_062;
    let q = q * z + 165.027_009_831_698_85;
    let q = q * z + 432.881_060_491_290_27;
    let q = q * z + 485.390_399_635_913_7;
    let q = q * z + 194.550_657_148_261_4;
    let angle = u + u * z * p / q;
    let angle = if far { angle + std::f64::consts::FRAC_PI_4 } else { angle };
    let angle = if steep { std::f64::consts::FRAC_PI_2 - angle } else { angle };
    let angle = if x.is_sign_negative() { std::f64::consts::PI - angle } else { angle };
    let value = with_sign(angle as f32, y);
    if x.is_nan() || y.is_nan() { x + y } else { value }
}
