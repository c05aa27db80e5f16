//! Scopes: where in the user's model a node stands, as a path of names with `/` between them.
//!
//! The user's names come first. What the compiler adds ends with `()`, as in `encoder/0/softmax()`, which no name of a
//! user's does: nodes of inlined composites and of derivatives are known by it.

use std::sync::Arc;

/// The scope of what a training step appends to the gradients.
pub const STEP: &str = "step()";

const MARK: &str = "()";

/// A path within another.
///
/// ```
/// use backfit_ir::scope;
/// let outer = "encoder/0".into();
/// assert_eq!(&*scope::within(&outer, "attn"), "encoder/0/attn");
/// assert_eq!(&*scope::within(&"".into(), "attn"), "attn");
/// ```
pub fn within(outer: &Arc<str>, inner: &str) -> Arc<str> {
    match (outer.is_empty(), inner.is_empty()) {
        (_, true) => outer.clone(),
        (true, false) => inner.into(),
        (false, false) => format!("{outer}/{inner}").into(),
    }
}

/// The scope of what stands for a composite or a derivative in an outer scope.
///
/// ```
/// use backfit_ir::scope;
/// assert_eq!(&*scope::within_composite(&"encoder/0".into(), "softmax"), "encoder/0/softmax()");
/// ```
pub fn within_composite(outer: &Arc<str>, name: &str) -> Arc<str> {
    within(outer, &format!("{name}{MARK}"))
}

/// The composites and derivatives that a scope is within, from the outermost.
///
/// ```
/// use backfit_ir::scope;
/// let scope = "mean/attention.backward()/softmax.backward()";
/// assert_eq!(scope::composites(scope).collect::<Vec<_>>(), ["attention.backward", "softmax.backward"]);
/// ```
pub fn composites(scope: &str) -> impl Iterator<Item = &str> {
    scope.split('/').filter_map(|part| part.strip_suffix(MARK))
}

/// Whether a user may not name a scope so.
pub(crate) fn is_reserved(name: &str) -> bool {
    composites(name).next().is_some()
}
