//! Names that nothing has yet, made of other names and numbers.

/// The first number that is free, of those from `first` on, where numbers are taken in order. Many may
/// be: few of them are asked for.
///
/// ```
/// use ferroflow_ir::free_name::free_number;
/// assert_eq!(free_number(0, |number| number < 1000), 1000);
/// assert_eq!(free_number(1, |_| false), 1);
/// ```
pub fn free_number(first: usize, is_taken: impl Fn(usize) -> bool) -> usize {
    if !is_taken(first) {
        return first;
    }
    let (mut taken, mut step) = (first, 1usize);
    while is_taken(taken.saturating_add(step)) {
        taken = taken.saturating_add(step);
        step = step.saturating_mul(2);
    }
    let mut free = taken.saturating_add(step);
    while taken + 1 < free {
        let middle = taken.midpoint(free);
        *(if is_taken(middle) { &mut taken } else { &mut free }) = middle;
    }
    free
}

/// The name `base` if it is free, or `base_1`, `base_2` and so on.
///
/// ```
/// use ferroflow_ir::free_name::free_name;
/// assert_eq!(free_name("add", |name| name == "add"), "add_1");
/// ```
pub fn free_name(base: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(base) {
        return base.into();
    }
    let name = |number: usize| format!("{base}_{number}");
    name(free_number(1, |number| is_taken(&name(number))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, collections::HashSet};

    #[test]
    fn names_are_taken_in_order_and_few_are_asked_for() {
        let (mut taken, asked) = (HashSet::new(), Cell::new(0));
        for number in 0..1000 {
            let name = free_name("a", |name| {
                asked.set(asked.get() + 1);
                taken.contains(name)
            });
            assert_eq!(name, if number == 0 { "a".into() } else { format!("a_{number}") });
            taken.insert(name);
        }
        assert!(asked.get() < 25_000);
    }

    #[test]
    fn numbers_that_are_missing_are_no_trouble() {
        let taken = HashSet::from([0, 1, 5, 6]);
        let free = free_number(0, |number| taken.contains(&number));
        assert!(!taken.contains(&free));
    }
}
