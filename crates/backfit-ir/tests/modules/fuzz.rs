//! Whatever bytes the parser is given, it answers, and what it accepts it also writes.

use super::support::{RICH, cases};
use backfit_ir::Module;
use backfit_ir::text::{Limits, parse};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

const PIECES: [&str; 40] = [
    "0",
    "1",
    "-1",
    "2",
    "8",
    "9",
    "64",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1152921504606846976",
    "inf",
    "-inf",
    "1e400",
    "0x7fc00000",
    "true",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
    "@",
    "%",
    "%0",
    "%1",
    "f32",
    "i64",
    "bool",
    "u1",
    "f32[]",
    "\n",
    "é",
    "blobs",
];

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-' || b == b'_'
}

/// Changes the text at one place.
fn mutate(text: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(text.len());
    let end = (at + random.below(20)).min(text.len());
    let piece = random.pick(&PIECES).as_bytes().to_vec();
    match random.below(8) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => drop(text.splice(at..at, piece)),
        3 => text[at] = random.next() as u8,
        4 => drop(text.splice(at..at, text[at..end].to_vec())),
        5 => {
            let from = random.below(other.len());
            let to = (from + random.below(60)).min(other.len());
            drop(text.splice(at..end, other[from..to].to_vec()));
        }
        // A whole word or number: this keeps the text well formed and comes far.
        _ => {
            let start = text[..at].iter().rposition(|&b| !is_word(b)).map_or(0, |i| i + 1);
            let end = text[at..].iter().position(|&b| !is_word(b)).map_or(text.len(), |i| at + i);
            drop(text.splice(start.min(end)..end, piece));
        }
    }
}

fn try_parse(text: &[u8]) -> bool {
    let Ok(module) = parse(text, Limits { splat_bytes: 1 << 16 }) else { return false };
    let printed = module.to_string();
    let again = Module::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.to_string(), printed);
    true
}

/// One text per operator and sample, of moderate size.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = cases().iter().step_by(3).map(|case| case.module.to_string()).collect();
    texts.retain(|text| text.len() < 6000);
    texts.extend(vec![RICH.to_owned(); texts.len() / 4]);
    texts
}

#[test]
fn mutated_texts_never_panic() {
    let texts = texts();
    let mut random = Random(7);
    let mut accepted = 0;
    for _ in 0..10_000 {
        let mut text = texts[random.below(texts.len())].clone().into_bytes();
        let other = texts[random.below(texts.len())].as_bytes();
        for _ in 0..=random.below(3) {
            if !text.is_empty() {
                mutate(&mut text, other, &mut random);
            }
        }
        accepted += usize::from(try_parse(&text));
    }
    assert!(accepted > 250, "only {accepted} mutants came through to the verifier");
}

#[test]
fn every_truncation_is_refused_or_read() {
    for end in 0..RICH.len() {
        try_parse(&RICH.as_bytes()[..end]);
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(3);
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        try_parse(&bytes);
        let pieces: Vec<&str> = (0..random.below(60)).map(|_| random.pick(&PIECES)).collect();
        try_parse(pieces.join(" ").as_bytes());
    }
}

#[test]
fn long_texts_take_linear_time_and_no_recursion() {
    for piece in ["{", "[", "func @f {", "\"a\"", "// x\n", "%1 = exp %0 : f32[1]\n", "composite "] {
        assert!(!try_parse(piece.repeat(100_000).as_bytes()) || piece.starts_with("//"));
    }
    let mut text = String::from("func @f0 {\n input %0 x : f32[2]\n return y = %0\n}\n");
    for i in 1..5000 {
        let before = i - 1;
        text += &format!("func @f{i} {{ input %0 x : f32[2] %1 = call @f{before} %0 : f32[2] return y = %1 }}\n");
    }
    assert!(try_parse(text.as_bytes()));
}
