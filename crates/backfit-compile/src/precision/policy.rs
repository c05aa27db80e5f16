//! The table of a policy.

use super::class::Class;
use backfit_ir::{DType, pattern};
use std::fmt;

/// What an operator computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compute {
    /// As declared: f32.
    #[default]
    F32,
    /// Operands and results are f16; sums within the operator are f32.
    F16,
    /// Operands and results are bf16; sums within the operator are f32.
    Bf16,
    /// Products of f32 by bf16 arithmetic: each operand is split into three bf16 numbers that add up to it, and the six
    /// largest of the nine products are added in f32. Of other operators than contractions the same as `F32`.
    Bf16x3,
}

impl Compute {
    /// The dtype in which operands and results are stored.
    pub const fn dtype(self) -> DType {
        match self {
            Compute::F32 | Compute::Bf16x3 => DType::F32,
            Compute::F16 => DType::F16,
            Compute::Bf16 => DType::BF16,
        }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Compute::F32 => "f32",
            Compute::F16 => "f16",
            Compute::Bf16 => "bf16",
            Compute::Bf16x3 => "bf16x3",
        }
    }
}

/// What else holds for an engine that stores nothing but f16 and has wide sums within contractions only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engine {
    /// Results of forward products are brought into ± this; those of derivatives are not, so that a guard sees them overflow.
    pub product_ceiling: f64,
}

impl Default for Engine {
    /// 32752, above which the engines that were measured give infinity.
    fn default() -> Self {
        Engine { product_ceiling: 32752.0 }
    }
}

/// How trainable weights that are declared f32 lie in the resident store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Masters {
    /// As f32.
    #[default]
    F32,
    /// As bf16; updates are rounded up or down at random, so that small ones are not lost on the average.
    Stochastic,
    /// As bf16, and beside each what rounding left, as bf16 too: 16 bits of significand.
    Compensated,
}

impl Masters {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Masters::F32 => "f32",
            Masters::Stochastic => "bf16, stochastic rounding",
            Masters::Compensated => "bf16, compensated",
        }
    }
}

/// An exception of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    /// Which scopes: components with `*` for any one and `**` for any number of them, as in `encoder/*/attn/**`.
    /// What is within a function or loop has before its scopes those in which all its calls stand.
    pub scope: String,
    /// Which class; all but updates and random numbers where there is none.
    pub class: Option<Class>,
    /// What is computed in there.
    pub compute: Compute,
}

/// In which dtypes a program computes: a table by class, and exceptions by scope, of which the last that fits counts.
///
/// ```
/// use backfit_compile::precision::{Class, Compute, Policy};
/// let policy = Policy::bf16().within("head/**", Compute::F32).with(Class::Softmax, Compute::Bf16);
/// assert_eq!(policy.compute(Class::Contraction, "encoder/0/fc1"), Compute::Bf16);
/// assert_eq!(policy.compute(Class::Contraction, "head/fc"), Compute::F32);
/// assert_eq!(policy.compute(Class::Update, "step()/adam_update()"), Compute::F32);
/// println!("{policy}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    name: String,
    table: [Compute; Class::ALL.len()],
    exceptions: Vec<Exception>,
    engine: Option<Engine>,
    masters: Masters,
}

impl Default for Policy {
    /// [`Policy::f32`].
    fn default() -> Self {
        Policy::f32()
    }
}

impl Policy {
    /// The named policies.
    pub const NAMES: [&'static str; 5] = ["f32", "bf16", "f16", "bf16x3", "f16-engine"];

    fn uniform(name: &str, classes: &[Class], compute: Compute) -> Self {
        let table = Class::ALL.map(|class| if classes.contains(&class) { compute } else { Compute::F32 });
        Policy { name: name.to_owned(), table, exceptions: Vec::new(), engine: None, masters: Masters::F32 }
    }

    /// Everything as declared, every bit as without a policy.
    pub fn f32() -> Self {
        Policy::uniform("f32", &[], Compute::F32)
    }

    /// Contractions and elementwise operators in bf16; statistics, softmax, losses and updates in f32.
    pub fn bf16() -> Self {
        Policy::uniform("bf16", &[Class::Contraction, Class::Elementwise], Compute::Bf16)
    }

    /// Contractions and elementwise operators in f16; statistics, softmax, losses and updates in f32. Gradients below
    /// 6·10⁻⁸ vanish: scale the loss where they are small.
    pub fn f16() -> Self {
        Policy::uniform("f16", &[Class::Contraction, Class::Elementwise], Compute::F16)
    }

    /// Contractions of f32 by three-way bf16 splits, as exact as f32; everything else in f32.
    pub fn bf16x3() -> Self {
        Policy::uniform("bf16x3", &[Class::Contraction], Compute::Bf16x3)
    }

    /// For engines that store nothing but f16 and have wide sums within contractions only. Forward and backward are f16
    /// throughout, sums are contractions with ones, norms are scaled before they square, epsilons do not vanish, and
    /// products stay below a ceiling. The resident store and the update are f32: they stand for the host beside the engine.
    pub fn f16_engine() -> Self {
        let narrow = [Class::Contraction, Class::Elementwise, Class::Reduction, Class::Softmax, Class::Loss];
        Policy { engine: Some(Engine::default()), ..Policy::uniform("f16-engine", &narrow, Compute::F16) }
    }

    /// The policy of one of the [names](Policy::NAMES).
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "f32" => Some(Policy::f32()),
            "bf16" => Some(Policy::bf16()),
            "f16" => Some(Policy::f16()),
            "bf16x3" => Some(Policy::bf16x3()),
            "f16-engine" => Some(Policy::f16_engine()),
            _ => None,
        }
    }

    /// Changes a row of the table.
    pub fn with(mut self, class: Class, compute: Compute) -> Self {
        self.table[class as usize] = compute;
        self
    }

    /// What is computed in within these scopes, of any class but updates and random numbers.
    pub fn within(self, scope: &str, compute: Compute) -> Self {
        self.except(Exception { scope: scope.to_owned(), class: None, compute })
    }

    /// Adds an exception, which counts before earlier ones.
    pub fn except(mut self, exception: Exception) -> Self {
        self.exceptions.push(exception);
        self
    }

    /// Computes as for an engine with these limits.
    pub fn on_engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Stores trainable weights that are declared f32 in another way; updates compute in f32 all the same. The resident store
    /// then has other dtypes than declared, so that checkpoints only go on under a policy with the same masters.
    pub fn masters(mut self, masters: Masters) -> Self {
        self.masters = masters;
        self
    }

    /// How trainable weights are stored.
    pub fn stores(&self) -> Masters {
        self.masters
    }

    /// The engine it computes as for.
    pub fn engine(&self) -> Option<Engine> {
        self.engine
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What operators of a class compute in within a scope. Of updates f16 counts on an engine alone, and there for Adam.
    pub fn compute(&self, class: Class, scope: &str) -> Compute {
        let fits = |e: &&Exception| e.is_for(class) && matches(&e.scope, scope);
        let said = self.exceptions.iter().rev().find(fits).map_or(self.table[class as usize], |e| e.compute);
        self.held(class, said)
    }

    /// What becomes of what is said of a class: no update but that of an engine is anything else than f32.
    fn held(&self, class: Class, said: Compute) -> Compute {
        if class == Class::Update && (self.engine.is_none() || said != Compute::F16) { Compute::F32 } else { said }
    }

    /// The words for that.
    fn told(&self, class: Class, said: Compute) -> &'static str {
        match self.held(class, said) {
            Compute::F16 if class == Class::Update => "f16 for Adam, f32 for all else",
            compute => compute.word(),
        }
    }

    /// Whether operators of a class compute in f32 in every scope.
    pub fn is_wide(&self, class: Class) -> bool {
        let exceptions = self.exceptions.iter().filter(|e| e.is_for(class));
        let mut said = exceptions.map(|e| e.compute).chain([self.table[class as usize]]);
        said.all(|said| self.held(class, said) == Compute::F32)
    }

    /// Whether nothing changes.
    pub fn is_identity(&self) -> bool {
        self.engine.is_none() && self.masters == Masters::F32 && Class::ALL.into_iter().all(|class| self.is_wide(class))
    }

    /// In a line.
    pub fn summary(&self) -> String {
        if self.is_identity() {
            return "every value keeps its declared dtype".to_owned();
        }
        let rows = Class::ALL.map(|class| (class, self.table[class as usize]));
        let narrow = rows.into_iter().filter(|&(class, said)| self.held(class, said) != Compute::F32);
        let narrow = narrow.map(|(class, said)| format!("{} in {}", class.word(), self.told(class, said)));
        let weights = Some(self.masters).filter(|m| *m != Masters::F32).map(|m| format!("weights as {}", m.word()));
        format!("{}: {}", self.name, narrow.chain(weights).collect::<Vec<_>>().join(", "))
    }
}

impl Exception {
    fn is_for(&self, class: Class) -> bool {
        self.class.map_or(!matches!(class, Class::Update | Class::Random), |c| c == class)
    }
}

impl fmt::Display for Policy {
    /// The table, a line per class, then the exceptions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "precision {}", self.name)?;
        for class in Class::ALL {
            writeln!(f, "  {:<12} {}", class.word(), self.told(class, self.table[class as usize]))?;
        }
        writeln!(f, "  {:<12} {}", "weights", self.masters.word())?;
        for e in &self.exceptions {
            let (class, compute) = match e.class {
                Some(class) => (class.word(), self.told(class, e.compute)),
                None => ("all", e.compute.word()),
            };
            writeln!(f, "  {class:<12} {compute} within {}", e.scope)?;
        }
        if let Some(engine) = self.engine {
            writeln!(f, "  products of the forward pass within ±{}; sums as contractions", engine.product_ceiling)?;
        }
        Ok(())
    }
}

/// Whether a pattern of components, `*` and `**` fits a scope path.
fn matches(pattern: &str, scope: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = scope.split('/').filter(|part| !part.is_empty()).collect();
    pattern::fits(&parts, &path, &"**", &"*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_components_one_or_any_number() {
        assert!(matches("**", ""));
        assert!(matches("**", "a/b"));
        assert!(matches("a/**", "a"));
        assert!(matches("a/*/c", "a/b/c"));
        assert!(matches("**/attn/**", "encoder/0/attn/softmax.backward()"));
        assert!(!matches("a/*", "a"));
        assert!(!matches("a", "a/b"));
        assert!(!matches("a", "ab"));
        // Decided at once, however many there are.
        assert!(!matches(&"**/a/".repeat(40), &"a/".repeat(80)));
    }

    #[test]
    fn the_last_exception_that_fits_counts_and_updates_stay_f32() {
        let policy = Policy::f16().within("**", Compute::Bf16).within("a/**", Compute::F32);
        assert_eq!(policy.compute(Class::Loss, "b"), Compute::Bf16);
        assert_eq!(policy.compute(Class::Loss, "a/b"), Compute::F32);
        assert_eq!(policy.compute(Class::Update, "a/b"), Compute::F32);
        assert!(policy.is_wide(Class::Update) && !policy.is_wide(Class::Loss));
    }

    #[test]
    fn every_name_has_its_policy_and_only_f32_changes_nothing() {
        for name in Policy::NAMES {
            let policy = Policy::named(name).unwrap();
            assert_eq!(policy.name(), name);
            assert_eq!(policy.is_identity(), name == "f32");
            assert_eq!(policy.to_string().lines().filter(|l| l.contains("contraction ")).count(), 1);
        }
    }
}
