//! From operators to their definitions.

use super::definition::{Kind, OpDef, Primitive};
use crate::op::Op;

impl Op {
    /// The definition of this operator. For a call it is the definition of `call` itself, not of the callee.
    pub fn definition(&self) -> &'static OpDef {
        super::find(self.name()).expect("every primitive has a row in the registry")
    }

    /// The rules of this primitive.
    pub fn primitive(&self) -> &'static Primitive {
        match &self.definition().kind {
            Kind::Primitive(rules) => rules,
            Kind::Composite(_) => unreachable!("the name of a primitive belongs to a primitive"),
        }
    }
}
