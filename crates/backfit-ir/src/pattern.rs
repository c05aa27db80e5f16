//! Patterns that names and paths fit.

/// Whether `name` fits a pattern, in which `many` stands for any number of parts and `one` for a single one. Parts are what
/// the caller takes them for: characters of a name, components of a path. Takes at most as many steps as the pattern has
/// parts times those of the name.
///
/// ```
/// use backfit_ir::pattern::fits;
/// let path = ["encoder", "0", "attn", "q"];
/// assert!(fits(&["encoder", "*", "**"], &path, &"**", &"*"));
/// assert!(!fits(&["encoder", "*"], &path, &"**", &"*"));
/// ```
pub fn fits<T: PartialEq>(pattern: &[T], name: &[T], many: &T, one: &T) -> bool {
    let (mut at, mut next) = (0, 0);
    // The last `many` and how far it reaches: where it takes more, those before it need not.
    let mut last: Option<(usize, usize)> = None;
    while next < name.len() {
        match (pattern.get(at), last) {
            (Some(part), _) if part == many => {
                last = Some((at, next));
                at += 1;
            }
            (Some(part), _) if part == one || *part == name[next] => (at, next) = (at + 1, next + 1),
            (_, Some((place, end))) => {
                last = Some((place, end + 1));
                (at, next) = (place + 1, end + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|part| part == many)
}
