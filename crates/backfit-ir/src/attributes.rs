//! Named attributes of operators.

use crate::dtype::DType;
use std::fmt;

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attr {
    /// An integer.
    Int(i64),
    /// A float; compared by bits.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A word or text.
    Str(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A dtype.
    DType(DType),
}

impl PartialEq for Attr {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Attr::Int(a), Attr::Int(b)) => a == b,
            (Attr::Float(a), Attr::Float(b)) => a.to_bits() == b.to_bits(),
            (Attr::Bool(a), Attr::Bool(b)) => a == b,
            (Attr::Str(a), Attr::Str(b)) => a == b,
            (Attr::Ints(a), Attr::Ints(b)) => a == b,
            (Attr::DType(a), Attr::DType(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Int(v) => write!(f, "{v}"),
            Attr::Float(v) => write!(f, "{v:?}"),
            Attr::Bool(v) => write!(f, "{v}"),
            Attr::Str(v) => write!(f, "{v:?}"),
            Attr::DType(v) => write!(f, "{v}"),
            Attr::Ints(v) => {
                f.write_str("[")?;
                for (i, x) in v.iter().enumerate() {
                    write!(f, "{}{x}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

macro_rules! from {
    ($($t:ty => |$v:ident| $e:expr;)*) => { $(
        impl From<$t> for Attr {
            fn from($v: $t) -> Self { $e }
        }
    )* };
}

from! {
    i64 => |v| Attr::Int(v);
    usize => |v| Attr::Int(v as i64);
    f64 => |v| Attr::Float(v);
    bool => |v| Attr::Bool(v);
    &str => |v| Attr::Str(v.to_owned());
    DType => |v| Attr::DType(v);
    Vec<i64> => |v| Attr::Ints(v);
    &[usize] => |v| Attr::Ints(v.iter().map(|&x| x as i64).collect());
    &Vec<usize> => |v| v.as_slice().into();
}

/// Attributes by name, in the order in which the operator declares them. Prints as `{axis=-1, epsilon=1e-5}`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Attributes(Vec<(String, Attr)>);

/// A wrong or missing attribute, said in words.
pub type AttrResult<T> = Result<T, String>;

impl Attributes {
    /// No attributes.
    pub const fn new() -> Self {
        Attributes(Vec::new())
    }

    /// Adds one.
    pub fn with(mut self, name: &str, value: impl Into<Attr>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// Adds one where there is a value.
    pub fn with_option(self, name: &str, value: Option<impl Into<Attr>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attr)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The attribute with this name.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    fn typed<T>(&self, name: &str, kind: &str, read: impl Fn(&Attr) -> Option<T>) -> AttrResult<T> {
        let attr = self.get(name).ok_or_else(|| format!("attribute '{name}' is missing"))?;
        read(attr).ok_or_else(|| format!("attribute '{name}' is {attr}, not {kind}"))
    }

    /// An integer.
    pub fn int(&self, name: &str) -> AttrResult<i64> {
        self.typed(name, "an integer", |a| if let Attr::Int(v) = a { Some(*v) } else { None })
    }

    /// A non-negative integer.
    pub fn size(&self, name: &str) -> AttrResult<usize> {
        self.typed(name, "a size", |a| if let Attr::Int(v) = a { usize::try_from(*v).ok() } else { None })
    }

    /// A float; integers are taken too.
    pub fn float(&self, name: &str) -> AttrResult<f64> {
        self.typed(name, "a number", |a| match a {
            Attr::Float(v) => Some(*v),
            Attr::Int(v) => Some(*v as f64),
            _ => None,
        })
    }

    /// A truth value.
    pub fn bool(&self, name: &str) -> AttrResult<bool> {
        self.typed(name, "true or false", |a| if let Attr::Bool(v) = a { Some(*v) } else { None })
    }

    /// A text.
    pub fn str(&self, name: &str) -> AttrResult<&str> {
        match self.get(name) {
            Some(Attr::Str(v)) => Ok(v),
            Some(other) => Err(format!("attribute '{name}' is {other}, not a text")),
            None => Err(format!("attribute '{name}' is missing")),
        }
    }

    /// A dtype.
    pub fn dtype(&self, name: &str) -> AttrResult<DType> {
        self.typed(name, "a dtype", |a| if let Attr::DType(v) = a { Some(*v) } else { None })
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> AttrResult<Vec<i64>> {
        self.typed(name, "a list of integers", |a| if let Attr::Ints(v) = a { Some(v.clone()) } else { None })
    }

    /// A list of non-negative integers.
    pub fn sizes(&self, name: &str) -> AttrResult<Vec<usize>> {
        self.typed(name, "a list of sizes", |a| match a {
            Attr::Ints(v) => v.iter().map(|&x| usize::try_from(x).ok()).collect(),
            _ => None,
        })
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("}")
    }
}
