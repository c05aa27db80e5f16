//! Recipes that are right, and every way in which one is wrong.

use super::*;

fn digits(overrides: &[&str]) -> Result<Loaded> {
    load("digits", &overrides.iter().map(|o| (*o).to_string()).collect::<Vec<_>>())
}

#[test]
fn every_recipe_inside_the_program_is_valid_and_survives_its_text_form() {
    for name in builtin::names() {
        let loaded = load(name, &[]).unwrap();
        let again = check(Source::new(name, "x.toml", &loaded.to_toml().unwrap(), &[])).unwrap();
        assert_eq!(again.recipe, loaded.recipe, "{name}");
    }
}

#[test]
fn changes_are_applied_in_order() {
    let loaded = digits(&["epochs=3", "model.layers=[5, 6]", "optimizer.name=sgd", "epochs=4"]).unwrap();
    assert_eq!((loaded.recipe.epochs, loaded.recipe.model.layers), (4, Some(vec![5, 6])));
    assert_eq!(
        digits(&["schedule.name=\"linear\"", "schedule.min=0.1"]).unwrap().recipe.schedule.unwrap().min,
        Some(0.1)
    );
}

#[test]
fn a_wrong_change_names_the_option() {
    let cases = [
        ("optimizer.lr=1", "unknown field `lr`"),
        ("optimizer.name=adamm", "unknown variant `adamm`"),
        ("optimizer.learning_rate=-1", "-1.0 is not a positive number"),
        ("batch=0", "a batch of 0 samples"),
        ("epochs=0", "0 epochs"),
        ("epochs=1000001", "more than 1000000 epochs"),
        ("epochs=9223372036854775807", "more than 1000000 epochs"),
        ("precision=bf17", "no policy \"bf17\""),
        ("epochs=-1", "epochs"),
        ("model.dropout=1.0", "below 1"),
        ("model.layers=[0]", "every width"),
        ("optimizer.centered=true", "no meaning for this optimizer"),
        ("schedule.share=0.2", "no meaning for this schedule"),
        ("early_stop.patience=0", "no patience"),
        ("target.threads=0", "0 threads"),
        ("accumulate=0", "0 parts"),
        ("accumulate=3", "64 does not divide into 3 equal parts"),
        ("unroll=65537", "more than 65536 steps in a run"),
        ("unroll=0", "0 steps in a run"),
        ("loss_scale=0.5", "0.5 is not between 1 and 2^100"),
        ("loss_scale=adaptive", "nothing is known of 'adaptive'"),
        ("optimizer.ema=1.0", "at least 0 and below 1"),
        ("optimizer.groups=[{pattern=\"*\", rate=-1}]", "rate and decay of '*' are factors"),
        (
            "optimizer.learning_rate=1e39",
            "optimizer.learning_rate: 1e39 is not a positive number within the range of f32",
        ),
        ("optimizer.learning_rate=1e-50", "optimizer.learning_rate"),
        ("optimizer.epsilon=1e-50", "optimizer.epsilon: it must be a positive number within the range of f32"),
        ("optimizer.epsilon=1e-40", "optimizer.epsilon"),
        ("optimizer.clip_norm=1e39", "optimizer.clip_norm"),
        ("optimizer.clip_norm=nan", "optimizer.clip_norm"),
        ("optimizer.weight_decay=1e39", "optimizer.weight_decay"),
        ("optimizer.ema=0.9999999999", "at least 0 and below 1, as an f32 too"),
        ("optimizer.betas=[0.9, 0.9999999999]", "optimizer.betas"),
        ("optimizer.groups=[{pattern=\"*\", rate=1e39}]", "rate and decay of '*' are factors"),
        ("optimizer.groups=[{pattern=\"*\", decay=1e-50}]", "rate and decay of '*' are factors"),
        ("optimizer.groups=[{pattern=\"*\", rate=1e-37}]", "the learning rate times the rate of '*'"),
        ("optimizer.groups=[{patern=\"*\"}]", "unknown field `patern`"),
        ("early_stop", "KEY=VALUE"),
        ("epochs.x=1", "not a table"),
    ];
    for (change, words) in cases {
        let error = digits(&[change]).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(&format!("--set {change}")), "{change}: {error}");
        assert!(error.contains("help: "), "{error}");
    }
}

#[test]
fn numbers_of_the_loss_and_the_schedule_are_within_the_range_of_f32() {
    for delta in ["0", "1e-50", "1e39"] {
        let changes = ["loss={name=\"huber\"}".to_owned(), format!("loss.delta={delta}")];
        let error = load("sine", &changes).unwrap_err().to_string();
        assert!(error.contains("loss.delta: it must be a positive number within the range of f32"), "{error}");
    }
    for (change, key) in [("schedule.min=1e39", "schedule.min"), ("schedule.min=-1", "schedule.min")] {
        let error = digits(&["schedule.name=linear", change]).unwrap_err().to_string();
        assert!(error.contains(key), "{change}: {error}");
    }
    let error = digits(&["schedule={name=\"exponential\"}", "schedule.gamma=1e-50"]).unwrap_err().to_string();
    assert!(error.contains("schedule.gamma: this schedule needs a positive number"), "{error}");
}

#[test]
fn a_wrong_file_names_the_line() {
    let good = builtin::find("digits").unwrap();
    let cases = [
        ("learning_rate = 0.002", "learning_rate = -0.5", ":22", "optimizer.learning_rate: -0.5"),
        ("learning_rate = 0.002", "learning_rat = 0.1", ":22", "unknown field `learning_rat`"),
        ("name = \"adam\"", "name = \"adamm\"", ":21", "unknown variant `adamm`"),
        ("batch = 64", "batch = 0", ":3", "a batch of 0 samples"),
        ("batch = 64", "batch = ", ":3", "not valid"),
        ("batch = 64", "batch = \"many\"", ":3", "invalid type"),
        ("kind = \"mlp\"", "kind = \"linear\"", ":8", "model.layers"),
    ];
    for (old, new, line, words) in cases {
        let text = good.replace(old, new);
        let error = check(Source::new("mine", "mine.toml", &text, &[])).unwrap_err().to_string();
        assert!(error.contains(words), "{new}: {error}");
        assert!(error.contains(&format!("mine.toml{line}")), "{new}: {error}");
    }
}

#[test]
fn an_unknown_recipe_lists_those_there_are() {
    let error = load("digit", &[]).unwrap_err().to_string();
    assert!(error.contains("'digit'") && error.contains("digits-cnn") && error.contains("mnist"), "{error}");
    assert!(load("missing.toml", &[]).unwrap_err().to_string().contains("missing.toml"));
}

#[test]
fn several_steps_in_one_run_do_not_go_with_weights_that_are_stored_otherwise() {
    let error = digits(&["masters=compensated", "unroll=2"]).unwrap_err().to_string();
    assert!(error.contains("masters stores them otherwise") && error.contains("--set unroll=2"), "{error}");
    assert!(digits(&["masters=compensated", "accumulate=2", "optimizer.ema=0.9"]).is_ok());
}

#[test]
fn all_problems_are_told_at_once() {
    let error = digits(&["batch=0", "epochs=0", "optimizer.momentum=0.9"]).unwrap_err();
    assert_eq!(error.problems().len(), 3);
}
