//! A compiled recipe, and recipes that come out of checkpoints.

use crate::interface::Interface;
use crate::network::training_program;
use crate::recipe::source::Source;
use crate::recipe::{self, Loaded};
use backfit::{Checkpoint, Compile, Cpu, Error, Problem, Result, Trainer};
use std::path::Path;

/// Names of the notes in a checkpoint.
mod note {
    pub const NAME: &str = "name";
    pub const RECIPE: &str = "recipe";
    pub const INTERFACE: &str = "interface";
}

/// The CPU with as many threads as the recipe says.
pub fn cpu(loaded: &Loaded) -> Cpu {
    loaded.recipe.target.threads.map_or_else(Cpu::default, |n| Cpu::default().threads(n))
}

/// Compiles a recipe; weights are those of its seed. The trainer's checkpoints will carry recipe and interface.
///
/// # Errors
/// The model cannot be built or compiled.
pub fn compile(loaded: &Loaded, interface: &Interface) -> Result<Trainer> {
    let program = training_program(loaded, interface)?;
    let compiled = program.compile_with(&cpu(loaded), &loaded.policy())?;
    let mut trainer = Trainer::new(compiled).seed(loaded.recipe.seed)?;
    trainer.use_averages(loaded.recipe.optimizer.ema.is_some())?;
    Ok(trainer)
}

/// Takes over the run of a checkpoint.
///
/// # Errors
/// The file is unreadable or damaged, or of another model.
pub fn resume(trainer: &mut Trainer, checkpoint: &Path) -> Result<()> {
    let Err(error) = trainer.resume(checkpoint) else { return Ok(()) };
    let mut problems = error.problems().to_vec();
    if let Some(last) = problems.last_mut().filter(|last| last.help.is_none()) {
        let recipe = checkpoint.with_file_name("recipe.toml");
        last.help = Some(format!("use the recipe that this run was trained with: {}", recipe.display()));
    }
    Error::from_problems(problems).map_or(Ok(()), Err)
}

/// Has the trainer's checkpoints carry recipe and interface.
///
/// # Errors
/// A number of the recipe that TOML cannot hold.
pub fn annotate(trainer: &mut Trainer, loaded: &Loaded, interface: &Interface) -> Result<()> {
    trainer.annotate(note::NAME, loaded.source.name());
    trainer.annotate(note::RECIPE, loaded.to_toml()?);
    trainer.annotate(note::INTERFACE, interface.to_json()?);
    Ok(())
}

/// The recipe in a checkpoint, changed, and what its model must know of samples.
///
/// # Errors
/// The file is unreadable or damaged, or not of this program; changes that cannot be.
pub fn of_checkpoint(path: &Path, overrides: &[String]) -> Result<(Loaded, Interface)> {
    let checkpoint = Checkpoint::load(path)?;
    let note = |name: &str| {
        checkpoint.metadata.get(&format!("note.{name}")).cloned().ok_or_else(|| {
            let problem = Problem::new("the checkpoint carries no recipe").in_file(path);
            problem.help("only checkpoints of 'backfit train' do; name a recipe with --recipe")
        })
    };
    // Paths in the recipe of a checkpoint are absolute; lines of errors count in the recipe.toml beside it.
    let beside = path.with_file_name("recipe.toml");
    let source = Source::new(&note(note::NAME)?, beside, &note(note::RECIPE)?, overrides);
    Ok((recipe::check(source)?, Interface::from_json(&note(note::INTERFACE)?)?))
}
