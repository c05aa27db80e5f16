//! The recipes inside the program.

macro_rules! recipes {
    ($($name:literal),* $(,)?) => {
        const ALL: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../recipes/", $name, ".toml")))),*];
    };
}

recipes!["digits", "digits-cnn", "iris", "sine", "mnist", "mnist-cnn", "cifar10-cnn", "char-lm", "char-lm-16"];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The text of one.
pub fn find(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}
