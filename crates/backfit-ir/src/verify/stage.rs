//! The pipeline's stages and what is legal in each, as data.

use std::fmt;

/// How far a module has come through the compiler: the last pass that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// As a front end built it.
    Built,
    /// Gradients and updates are part of the graph.
    Differentiated,
    /// Computation has the dtypes of the precision policy; master weights and loss scale are explicit.
    Precise,
    /// Composites that the target does not claim are inlined.
    Decomposed,
    /// Constants are folded, common and dead nodes are gone.
    Simplified,
    /// Axes are in the target's order; resident weights are packed.
    LaidOut,
    /// Nodes are grouped into the target's kernels.
    Fused,
    /// Ready for the plan: order and lifetimes may be read off.
    Planned,
}

/// What a stage asks of every function that an entry point reaches without crossing a claim.
/// What no stage allows, such as a use before its definition, is not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legality {
    /// The stage.
    pub stage: Stage,
    /// Whether composites may be called that the target does not claim.
    pub unclaimed_composites: bool,
    /// Whether nodes may stand there that no result depends on.
    pub dead_nodes: bool,
}

const fn row(stage: Stage, unclaimed_composites: bool, dead_nodes: bool) -> Legality {
    Legality { stage, unclaimed_composites, dead_nodes }
}

/// Every stage in the order of the pipeline.
pub const LEGALITY: [Legality; 8] = [
    //                         unclaimed composites, dead nodes
    row(Stage::Built, true, true),
    row(Stage::Differentiated, true, true),
    row(Stage::Precise, true, true),
    row(Stage::Decomposed, false, true),
    row(Stage::Simplified, false, false),
    row(Stage::LaidOut, false, false),
    row(Stage::Fused, false, false),
    row(Stage::Planned, false, false),
];

impl Stage {
    /// What is legal in this stage.
    pub const fn legality(self) -> Legality {
        LEGALITY[self as usize]
    }

    /// The word for it in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Stage::Built => "built",
            Stage::Differentiated => "differentiated",
            Stage::Precise => "precise",
            Stage::Decomposed => "decomposed",
            Stage::Simplified => "simplified",
            Stage::LaidOut => "laid out",
            Stage::Fused => "fused",
            Stage::Planned => "planned",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_every_stage_in_order() {
        for (index, row) in LEGALITY.iter().enumerate() {
            assert_eq!(row.stage as usize, index);
            assert_eq!(row.stage.legality(), *row);
        }
    }
}
