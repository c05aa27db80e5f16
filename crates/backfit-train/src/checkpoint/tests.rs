use super::*;
use safetensors::SafeTensors;
use std::fs;
use std::path::PathBuf;

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("backfit-{test}-{}.safetensors", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// A tensor of every computed dtype, a scalar and an empty one.
fn sample() -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    for dtype in DType::COMPUTED {
        let ty = Type::new(dtype, [2, 3]);
        let values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|v| if dtype == DType::Bool { v % 2.0 } else { v });
        checkpoint.tensors.insert(format!("of.{dtype}"), Literal::from_f64(ty, &values));
    }
    checkpoint.tensors.insert("scalar".into(), Literal::scalar(DType::F32, -0.0));
    checkpoint.tensors.insert("empty".into(), Literal::from_f32([0, 7], &[]));
    checkpoint.set(key::STEP, 17);
    checkpoint.set(key::POSITION, crate::data::Position { epoch: 1, batch: 2 });
    checkpoint.set("note", "quotes \" and\nlines, Ümläut");
    checkpoint
}

fn encoded(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    checkpoint.write_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_saved_is_loaded_bit_for_bit() {
    let file = Scratch::new("round-trip");
    sample().save(&file.0).unwrap();
    let loaded = Checkpoint::load(&file.0).unwrap();
    assert_eq!(loaded, sample());
    assert_eq!(loaded.get::<crate::data::Position>(key::POSITION).unwrap().batch, 2);
    Checkpoint::default().save(&file.0).unwrap();
    assert_eq!(Checkpoint::load(&file.0).unwrap(), Checkpoint::default());
}

#[test]
fn equal_checkpoints_have_equal_bytes() {
    assert_eq!(encoded(&sample()), encoded(&sample()));
}

#[test]
fn other_readers_of_the_format_read_it() {
    let bytes = encoded(&sample());
    let read = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.len(), sample().tensors.len());
    for (name, values) in &sample().tensors {
        let tensor = read.tensor(name).unwrap();
        assert_eq!((tensor.shape(), tensor.data()), (values.ty().shape.dims(), values.bytes()), "{name}");
    }
}

#[test]
fn every_truncation_is_refused_with_the_bytes_found() {
    let file = Scratch::new("truncated");
    let bytes = encoded(&sample());
    for end in 0..bytes.len() {
        fs::write(&file.0, &bytes[..end]).unwrap();
        let e = Checkpoint::load(&file.0).unwrap_err().to_string();
        assert!(e.contains("truncated") && (e.contains("found") || e.contains("claims")), "{end}: {e}");
    }
    fs::write(&file.0, [&bytes[..], b"x"].concat()).unwrap();
    assert!(Checkpoint::load(&file.0).is_err());
}

#[test]
fn a_flip_of_any_bit_is_refused_or_changes_nothing() {
    let file = Scratch::new("flipped");
    let mut checkpoint = Checkpoint::default();
    checkpoint.tensors.insert("w".into(), Literal::from_f32([3], &[1.0, 2.0, 3.0]));
    checkpoint.tensors.insert("b".into(), Literal::scalar(DType::Bool, 1.0));
    checkpoint.set(key::STEP, 5);
    let bytes = encoded(&checkpoint);
    let mut harmless = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file.0, &flipped).unwrap();
        if let Ok(loaded) = Checkpoint::load(&file.0) {
            assert_eq!(loaded, checkpoint, "bit {bit}");
            harmless += 1;
        }
    }
    assert!(harmless < 40, "{harmless} flips went unnoticed, which only white space explains");
}

#[test]
fn noise_and_huge_claims_neither_allocate_nor_panic() {
    let file = Scratch::new("noise");
    let draws = crate::data::order::Draws::new(3, 3);
    for round in 0..500u64 {
        let noise: Vec<u8> = (0..round % 64).map(|i| draws.bits(round << 8 | i) as u8).collect();
        fs::write(&file.0, noise).unwrap();
        assert!(Checkpoint::load_foreign(&file.0).is_err());
    }
    let headers = [
        r#"{"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,16]}}"#,
        r#"{"w":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,16]}}"#,
        r#"{"w":{"dtype":"F32","shape":[0,18446744073709551615,3],"data_offsets":[0,0]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}"#,
        r#"{"w":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#,
        r#"["w"]"#,
        "",
    ];
    for header in headers {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        for data in [0, 4, 8, 16] {
            let content = [&bytes[..], &vec![0; data]].concat();
            fs::write(&file.0, content).unwrap();
            let loaded = Checkpoint::load_foreign(&file.0);
            let empty = loaded.as_ref().is_ok_and(|c| c.tensors.values().all(|t| t.bytes().is_empty()));
            assert!(loaded.is_err() || empty, "{header}");
        }
    }
    fs::write(&file.0, u64::MAX.to_le_bytes()).unwrap();
    assert!(Checkpoint::load_foreign(&file.0).unwrap_err().to_string().contains("claims"));
}

#[test]
fn foreign_weights_load_as_such_and_not_as_a_checkpoint() {
    let file = Scratch::new("foreign");
    let header = br#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(1.5f32.to_le_bytes());
    fs::write(&file.0, &bytes).unwrap();
    assert_eq!(Checkpoint::load_foreign(&file.0).unwrap().tensors["w"].to_f64(), [1.5]);
    assert!(Checkpoint::load(&file.0).unwrap_err().to_string().contains("no checkpoint of Backfit"));
}

#[test]
fn a_newer_format_is_refused_as_such() {
    let file = Scratch::new("newer");
    let newer = "\"backfit.format\":\"2\"";
    let text = encoded(&sample());
    let at = text.windows(newer.len()).position(|w| w == b"\"backfit.format\":\"1\"").unwrap();
    let mut bytes = text;
    bytes[at..at + newer.len()].copy_from_slice(newer.as_bytes());
    fs::write(&file.0, bytes).unwrap();
    assert!(Checkpoint::load(&file.0).unwrap_err().to_string().contains("another version"));
}

#[test]
fn every_difference_to_the_model_is_listed() {
    let checkpoint = sample();
    let types: Vec<(String, Type)> =
        checkpoint.tensors.iter().map(|(name, t)| (name.clone(), t.ty().clone())).collect();
    checkpoint.check_against(&types).unwrap();
    let mut other = types;
    other.retain(|(name, _)| name != "scalar");
    other[0].1 = Type::new(DType::F32, [9]);
    other.push(("head.bias".into(), Type::new(DType::F32, [10])));
    let e = checkpoint.check_against(&other).unwrap_err();
    assert_eq!(e.problems().len(), 3);
    let e = e.to_string();
    for part in [
        "'head.bias: f32[10]' is missing",
        "'empty' is f32[0,7], expected is f32[9]",
        "'scalar: f32[]' is not expected",
    ] {
        assert!(e.contains(part), "{part} missing in: {e}");
    }
}

#[test]
fn metadata_that_is_missing_or_of_another_type_is_named() {
    let checkpoint = sample();
    let e = checkpoint.get::<u64>("sleep").unwrap_err().to_string();
    assert!(e.contains("'sleep'") && e.contains("note, position, step"), "{e}");
    assert!(checkpoint.get::<u64>("note").unwrap_err().to_string().contains("u64"));
}

#[test]
fn what_the_format_cannot_hold_is_refused_before_anything_is_written() {
    let file = Scratch::new("refused");
    sample().save(&file.0).unwrap();
    for (name, values) in
        [("packed", Literal::zeros(Type::new(DType::I4, [4]))), ("__metadata__", Literal::scalar(DType::F32, 0.0))]
    {
        let mut checkpoint = Checkpoint::default();
        checkpoint.tensors.insert(name.into(), values);
        assert!(checkpoint.save(&file.0).unwrap_err().to_string().contains(name));
        assert_eq!(Checkpoint::load(&file.0).unwrap(), sample());
    }
}
