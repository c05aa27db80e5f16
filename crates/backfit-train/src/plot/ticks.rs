//! Round numbers along an axis.

/// An axis from one round number to another.
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// Values and labels, rising.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over a range with about `count` ticks at multiples of 1, 2 or 5 times a power of ten.
    /// `whole` extends the axis to the ticks around the range.
    pub(super) fn new((least, greatest): (f64, f64), count: usize, whole: bool) -> Self {
        let (mut low, mut high) = (least, greatest);
        if (high - low).abs() <= f64::MIN_POSITIVE || !(high - low).is_finite() {
            // One value, or a range whose size no number can tell: something around it.
            let around = (low.abs() * 0.5).clamp(0.5, f64::MAX / 8.0);
            low = (low - around).max(f64::MIN / 4.0);
            high = (high + around).min(f64::MAX / 4.0);
        }
        let step = round_step((high - low) / count.max(1) as f64);
        if whole {
            low = (low / step).floor() * step;
            high = (high / step).ceil() * step;
        }
        let first = (low / step - 1e-9).ceil();
        let ticks = (0..=2 * count.max(1))
            .map(|i| (first + i as f64) * step)
            .take_while(|v| *v <= high + step * 1e-9)
            .map(|v| (v, label(v, step)))
            .collect();
        Axis { low, high, ticks }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// The least of 1, 2, 5 times a power of ten that is no less than `size`.
fn round_step(size: f64) -> f64 {
    let power = 10f64.powf(size.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= size * (1.0 - 1e-9));
    step.filter(|s| s.is_normal()).unwrap_or(size.max(f64::MIN_POSITIVE))
}

fn label(value: f64, step: f64) -> String {
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) {
        return format!("{value:.1e}");
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(range: (f64, f64), count: usize) -> Vec<String> {
        Axis::new(range, count, true).ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(labels((0.0, 1.0), 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels((0.03, 2.3), 5), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
        assert_eq!(labels((-3.0, 97.0), 4), ["-50", "0", "50", "100"]);
        assert_eq!(labels((0.0, 6e7), 3), ["0", "2.0e7", "4.0e7", "6.0e7"]);
    }

    #[test]
    fn one_value_lies_in_the_middle() {
        let axis = Axis::new((4.0, 4.0), 4, false);
        assert_eq!(axis.place(4.0), 0.5);
    }
}
