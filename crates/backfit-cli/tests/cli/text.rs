//! Models of texts and of augmented images.

#[cfg(unix)]
use crate::resume::interrupted;
use crate::runner::Workplace;
use serde_json::Value;

const RECIPE: &str = r#"
epochs = 4
batch = 8
[model]
kind = "transformer"
blocks = 1
width = 32
heads = 2
[data]
text = "text.txt"
context = 16
stride = 7
held_back = 0.2
[loss]
name = "cross_entropy"
[optimizer]
name = "adamw"
learning_rate = 0.01
clip_norm = 1.0
[schedule]
name = "cosine"
"#;

/// A rule that anyone can continue.
const LINE: &str = "one two three, ";

fn workplace() -> Workplace {
    let work = Workplace::new();
    work.write("text.txt", LINE.repeat(200));
    work.write("model.toml", RECIPE);
    work
}

fn loss(event: &Value) -> f64 {
    event["test"]["loss"].as_f64().unwrap_or_else(|| panic!("{event}"))
}

#[test]
fn a_model_of_a_text_writes_after_every_epoch_and_continues_what_it_is_given() {
    let work = workplace();
    let said = work.succeed(&["train", "model.toml", "--out", "run", "--json"]);
    let events = said.events();
    let of = |kind: &str| events.iter().filter(|e| e["event"] == kind).collect::<Vec<_>>();
    assert_eq!((of("started").len(), of("finished").len(), of("epoch").len()), (1, 1, 4));
    assert_eq!(of("started")[0]["epochs"], 4);
    let texts = of("text");
    assert_eq!(texts.len(), 4);
    let last = texts[3]["text"].as_str().unwrap();
    assert!(last.len() == 400 && last.matches(LINE).count() >= 20, "{last}");
    assert!(loss(&said.event("done")) < 0.2, "{}", said.event("done"));

    work.write("start.txt", "one tw");
    let predicted = work.succeed(&["predict", "run", "--input", "start.txt", "--json"]).event("text");
    assert!(predicted["text"].as_str().unwrap().starts_with("o three, one two"), "{predicted}");
    assert_eq!(loss(&work.succeed(&["eval", "run", "--json"]).event("evaluated")), loss(&said.event("done")));
    work.write("foreign.txt", "four");
    work.refuse(&["predict", "run", "--input", "foreign.txt"], &["'f'", "vocabulary"]);
}

#[test]
fn a_model_of_a_text_resumes_bit_for_bit() {
    let work = workplace();
    let constant = "schedule.name=constant";
    let whole = work.succeed(&["train", "model.toml", "--out", "whole", "--set", constant, "--json"]);
    work.succeed(&["train", "model.toml", "--out", "half", "--set", constant, "--epochs", "2"]);
    let rest = work.succeed(&["train", "--resume", "half", "--epochs", "4", "--json"]);
    assert_eq!(rest.event("done")["test"], whole.event("done")["test"]);
    assert_eq!(rest.event("text"), whole.event("text"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_a_later_epoch_saves_and_the_run_goes_on_bit_for_bit() {
    let work = workplace();
    let options = ["model.toml", "--epochs", "5", "--json"];
    let whole = work.succeed(&[&["train", "--out", "whole"][..], &options].concat());
    let per_epoch = whole.event("started")["steps_per_epoch"].as_u64().unwrap() as usize;
    let said = interrupted(&work, &[&["train", "--out", "parts"][..], &options].concat(), per_epoch + 3);
    assert!(said.event("interrupted")["steps"].as_u64().unwrap() > per_epoch as u64);
    let rest = work.succeed(&["train", "--resume", "parts", "--json"]);
    assert_eq!(rest.event("started")["step"], said.event("interrupted")["steps"]);
    assert_eq!(rest.event("done")["test"], whole.event("done")["test"]);
}

#[test]
fn tables_that_do_not_fit_a_text_are_refused_with_their_keys() {
    let work = workplace();
    let cases = [
        ("model.kind=mlp", "model.blocks"),
        ("model.heads=3", "model.width"),
        ("model.kv_heads=3", "model.kv_heads"),
        ("data.context=0", "data.context"),
        ("data.context=5000", "data.context"),
        ("data.mirror=true", "data.mirror"),
        ("loss.name=mse", "loss.name"),
        ("model.norm=batch", "model.norm"),
    ];
    for (change, key) in cases {
        work.refuse(&["train", "model.toml", "--set", change], &[key, "help: "]);
    }
    work.refuse(&["train", "digits", "--set", "data.context=3"], &["data.context", "transformer"]);
}

#[test]
fn norms_and_augmentation_are_options_of_a_recipe() {
    let work = Workplace::new();
    for norm in ["batch", "group"] {
        let norm = format!("model.norm={norm}");
        let changes = [
            "--set",
            &norm,
            "--set",
            "model.channels=[8, 16]",
            "--set",
            "data.take=640",
            "--set",
            "data.shift=2",
            "--set",
            "batch=16",
            "--epochs",
            "2",
        ];
        let said = work.succeed(&[["train", "digits-cnn", "--json"].as_slice(), &changes].concat());
        let accuracy = said.event("done")["test"]["accuracy"].as_f64().unwrap();
        assert!(accuracy > 0.6, "{norm}: {accuracy}");
    }
    work.refuse(
        &["train", "digits-cnn", "--set", "model.norm=group", "--set", "model.channels=[12]"],
        &["model.channels", "groups of 8"],
    );
}
