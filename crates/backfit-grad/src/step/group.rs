//! Groups of weights by name: their learning rate, weight decay, or that they are frozen.

use crate::optimizer::Optimizer;
use backfit_ir::{Error, Function, Loc, Place, Problem, Role, pattern};
use std::sync::Arc;

/// How the weights of a group differ from all others.
///
/// ```
/// use backfit_grad::Group;
/// let biases = Group { decay: 0.0, ..Group::default() };
/// assert_eq!(biases.rate, 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// The learning rate is multiplied by this.
    pub rate: f64,
    /// The optimizer's weight decay is multiplied by this; 0 for none.
    pub decay: f64,
    /// Leaves the weights as they are. They get neither gradient nor optimizer state.
    pub frozen: bool,
}

impl Default for Group {
    /// As all others: rate 1, decay 1, not frozen.
    fn default() -> Self {
        Group { rate: 1.0, decay: 1.0, frozen: false }
    }
}

impl Group {
    /// Whether a name fits a pattern, in which `*` stands for any characters and `?` for one.
    pub fn fits(pattern: &str, name: &str) -> bool {
        let characters = |text: &str| text.chars().collect::<Vec<char>>();
        pattern::fits(&characters(pattern), &characters(name), &'*', &'?')
    }

    fn flaw(&self, pattern: &str) -> Option<Problem> {
        let sound = |v: f64| v.is_finite() && v >= 0.0;
        let what = match *self {
            Group { rate, .. } if !sound(rate) => format!("the group '{pattern}' has the rate {rate}"),
            Group { decay, .. } if !sound(decay) => format!("the group '{pattern}' has the decay {decay}"),
            _ => return None,
        };
        Some(Problem::new(what).help("rate and decay are factors: give finite numbers that are not negative"))
    }
}

/// The groups of a step, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(Vec<Given>);

#[derive(Clone, Debug)]
struct Given {
    pattern: String,
    group: Group,
    loc: Loc,
}

impl Groups {
    pub fn add(&mut self, pattern: &str, group: Group, loc: Loc) {
        self.0.push(Given { pattern: pattern.to_owned(), group, loc });
    }

    /// The group of a weight: the last one whose pattern fits.
    pub fn of(&self, weight: &str) -> Group {
        let found = self.0.iter().rev().find(|given| Group::fits(&given.pattern, weight));
        found.map_or_else(Group::default, |given| given.group)
    }

    /// Makes the weights of frozen groups untrainable.
    ///
    /// # Errors
    /// A pattern that fits no trainable weight; factors that cannot be.
    pub fn freeze(&self, main: &mut Function) -> Result<(), Error> {
        let trainable = |role| role == Role::Weight { trainable: true };
        let weights: Vec<&str> = main.params.iter().filter(|p| trainable(p.role)).map(|p| p.name.as_str()).collect();
        let mut problems: Vec<Problem> = Vec::new();
        for Given { pattern, group, loc } in &self.0 {
            let unused = !weights.iter().any(|name| Group::fits(pattern, name));
            let unused = unused.then(|| {
                let problem = Problem::new(format!("the group '{pattern}' has no trainable weight"));
                problem.help(format!("the weights are: {}", weights.join(", ")))
            });
            let found = group.flaw(pattern).into_iter().chain(unused);
            problems.extend(found.map(|problem| problem.at(Place::Source(loc.clone()))));
        }
        for param in main.params.iter_mut().filter(|p| trainable(p.role)) {
            if self.of(&param.name).frozen {
                param.role = Role::Weight { trainable: false };
            }
        }
        Error::from_problems(problems).map_or(Ok(()), Err)
    }
}

impl Group {
    /// The optimizer of the group.
    ///
    /// # Errors
    /// It does not know of weight decay.
    pub(super) fn optimizer(&self, optimizer: &Arc<dyn Optimizer>) -> Result<Arc<dyn Optimizer>, Error> {
        if self.decay == 1.0 {
            return Ok(optimizer.clone());
        }
        optimizer.with_decay(self.decay).ok_or_else(|| {
            let problem = Problem::new(format!("a group changes the weight decay, of which {optimizer:?} has none"));
            problem.help("implement `Optimizer::with_decay`, or leave `decay` at 1").into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Group;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name) in
            [("*", ""), ("*.bias", "fc1.bias"), ("fc?.*", "fc1.weight"), ("a*b*c", "aXbbYc"), ("w", "w")]
        {
            assert!(Group::fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "w"), ("*.bias", "fc1.bias2"), ("fc?.*", "fc12.weight"), ("a*b*c", "acb"), ("w", "wv")]
        {
            assert!(!Group::fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_of_many_stars_are_decided_at_once() {
        let (stars, name) = ("*a".repeat(40), "a".repeat(80));
        assert!(Group::fits(&stars, &name));
        assert!(!Group::fits(&format!("{stars}*b"), &name));
    }
}
