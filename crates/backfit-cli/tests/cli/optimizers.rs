//! Every optimizer and schedule that a recipe can name.

use crate::runner::Workplace;

#[test]
fn iris_is_learned_with_every_optimizer() {
    let work = Workplace::new();
    let all: [&[&str]; 4] = [
        &["optimizer.name=lion", "optimizer.learning_rate=0.01", "schedule.name=one_cycle"],
        &["optimizer.name=adafactor", "optimizer.learning_rate=0.1"],
        &["optimizer.name=rmsprop", "optimizer.centered=true", "optimizer.learning_rate=0.01"],
        &["optimizer.name=sgd", "optimizer.learning_rate=0.3", "schedule.name=warmup", "schedule.warmup=20"],
    ];
    for (n, changes) in all.iter().enumerate() {
        let out = format!("run{n}");
        let mut args = vec!["train", "iris", "--json", "--out", &out];
        changes.iter().for_each(|change| args.extend(["--set", change]));
        let done = work.succeed(&args).event("done");
        let accuracy = done["test"]["accuracy"].as_f64().unwrap();
        assert!(accuracy >= 27.0 / 30.0 - 1e-6, "{changes:?}: {accuracy}");
        assert_eq!(done["allocations_per_step"], 0.0);
        // What is saved is what is read, state of other shapes than the weights' included.
        let evaluated = work.succeed(&["eval", &out, "--json"]).event("evaluated");
        assert_eq!(evaluated["test"], done["test"]);
    }
}
