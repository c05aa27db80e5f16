//! Which composites are delicate, and in what way: what a precision policy treats as a whole.

/// A family of composites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Means, variances, norms: sums of many elements, and differences from them.
    Statistics,
    /// Softmax and log-sum-exp.
    Softmax,
    /// Losses and metrics.
    Loss,
    /// Updates of weights, and what bounds gradients before them.
    Update,
    /// Random numbers.
    Random,
}

const FAMILIES: &[(Family, &[&str])] = &[
    (Family::Statistics, &["mean", "variance", "layer_norm", "rms_norm", "group_norm", "batch_norm"]),
    (Family::Softmax, &["softmax", "log_softmax", "logsumexp"]),
    (
        Family::Loss,
        &[
            "softmax_cross_entropy",
            "cross_entropy",
            "binary_cross_entropy_with_logits",
            "mse",
            "l1",
            "huber",
            "accuracy",
        ],
    ),
    (Family::Update, &["global_norm", "clip_by_global_norm"]),
    (Family::Random, &["random_uniform", "random_normal"]),
];

impl Family {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Family::Statistics => "statistics",
            Family::Softmax => "softmax",
            Family::Loss => "loss",
            Family::Update => "update",
            Family::Random => "random",
        }
    }

    /// The family of a composite or of its derivative, as in `softmax.backward`; updates are known by the end of their name.
    ///
    /// ```
    /// use backfit_ir::ops::family::Family;
    /// assert_eq!(Family::of("softmax.backward"), Some(Family::Softmax));
    /// assert_eq!(Family::of("adam_update"), Some(Family::Update));
    /// assert_eq!(Family::of("gelu"), None);
    /// ```
    pub fn of(name: &str) -> Option<Family> {
        let base = name.split('.').next().unwrap_or(name);
        if base.ends_with("_update") {
            return Some(Family::Update);
        }
        FAMILIES.iter().find(|(_, names)| names.contains(&base)).map(|(family, _)| *family)
    }
}

#[cfg(test)]
mod tests {
    use super::FAMILIES;

    #[test]
    fn every_name_is_an_operator() {
        for name in FAMILIES.iter().flat_map(|(_, names)| *names) {
            assert!(crate::ops::find(name).is_some(), "{name}");
        }
    }
}
