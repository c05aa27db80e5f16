//! The full public data sets, where a copy of them lies beside the workspace. Skipped where it does not.

use backfit_train::data::Split;
use backfit_train::data::public::{Loaded, fetch, load};
use std::path::PathBuf;

/// The folder of the sets, if there is one.
fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no public data sets in {}", folder.display());
    None
}

fn samples(name: &str) -> Option<Split> {
    match load(name, &folder()?).unwrap() {
        Loaded::Samples(split) => Some(split),
        Loaded::Text(_) => panic!("{name} is no text"),
    }
}

fn of_class(set: &backfit_train::data::Dataset) -> Vec<usize> {
    let labels = set.column("label").unwrap().to_i64();
    (0..10).map(|class| labels.iter().filter(|&&l| l == class).count()).collect()
}

#[test]
fn mnist_has_its_known_classes() {
    let Some(split) = samples("mnist") else { return };
    assert_eq!(split.train.column("image").unwrap().ty().to_string(), "u8[60000,1,28,28]");
    assert_eq!(of_class(&split.train), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    assert_eq!(of_class(&split.test), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
}

#[test]
fn the_bundled_digits_are_of_the_training_part_of_mnist() {
    let Some(split) = samples("mnist") else { return };
    let image = |set: &backfit_train::data::Dataset| set.column("image").unwrap().clone();
    let (train, test) = (image(&split.train), image(&split.test));
    let train: std::collections::HashSet<&[u8]> = train.bytes().chunks(784).collect();
    let test: std::collections::HashSet<&[u8]> = test.bytes().chunks(784).collect();
    let digits = image(&backfit_train::data::bundled::digits().unwrap());
    assert!(digits.bytes().chunks(784).all(|digit| train.contains(digit) && !test.contains(digit)));
}

#[test]
fn cifar10_has_as_many_images_of_every_class() {
    let Some(split) = samples("cifar10") else { return };
    assert_eq!(split.train.column("image").unwrap().ty().to_string(), "u8[50000,3,32,32]");
    assert_eq!(of_class(&split.train), [5000; 10]);
    assert_eq!(of_class(&split.test), [1000; 10]);
    assert_eq!(split.test.class_names().unwrap(), backfit_train::data::cifar::CLASSES);
}

#[test]
fn tinyshakespeare_has_65_characters() {
    let Some(folder) = folder() else { return };
    let Loaded::Text(corpus) = load("tinyshakespeare", &folder).unwrap() else { panic!("no text") };
    assert_eq!((corpus.tokens().len(), corpus.vocabulary().len()), (1_115_394, 65));
    let (train, _) = corpus.split(0.1).unwrap();
    assert_eq!(train.tokens().len(), 1_003_854);
    let batch = train.windows(64).batches(32).next().unwrap().unwrap();
    assert_eq!(batch.literal("y").unwrap().ty().to_string(), "i32[32,64]");
}

#[test]
fn every_set_is_fetched_from_a_folder_verified_and_loaded() {
    let Some(folder) = folder() else { return };
    let to = std::env::temp_dir().join(format!("backfit-public-{}", std::process::id()));
    for name in ["mnist", "cifar10", "tinyshakespeare"] {
        let fetched = fetch(name, &to, Some(&folder)).unwrap();
        assert!(fetched.iter().all(|file| file.is_file()), "{name}");
        if name != "cifar10" {
            load(name, &to).unwrap();
        }
    }
    std::fs::remove_dir_all(to).unwrap();
}
