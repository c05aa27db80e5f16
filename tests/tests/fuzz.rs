//! Random programs on the CPU target, against the interpreter. `BACKFIT_FUZZ_CASES` sets how many are tried,
//! `BACKFIT_FUZZ_SEED` where they start.

use backfit_suites::fuzz::check::{Compared, check};
use backfit_suites::fuzz::{generate, shrink};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_programs_compute_what_the_interpreter_does_in_every_configuration() {
    let (first, cases) = (number("BACKFIT_FUZZ_SEED", 0), number("BACKFIT_FUZZ_CASES", 400));
    let (mut total, mut failures) = (Compared::default(), Vec::new());
    for seed in first..first + cases {
        let case = generate::case(seed);
        match check(&case) {
            Ok(compared) => {
                total.exact += compared.exact;
                total.near += compared.near;
                total.skipped += compared.skipped;
            }
            Err(why) => {
                let smallest = shrink::shrink(case, |case| check(case).is_err());
                let now = check(&smallest).err().unwrap_or_default();
                failures.push(format!("seed {seed}: {why}\nsmallest: {now}\n{}", smallest.describe()));
            }
        }
        if failures.len() >= 10 {
            break;
        }
    }
    println!("{cases} programs: {total:?}");
    assert!(failures.is_empty(), "{} programs fail:\n{}", failures.len(), failures.join("\n"));
}
