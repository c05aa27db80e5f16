//! Embeddings.

use backfit_ir::{DType, Graph, Init, Tensor, Type};

/// The rows of a table `[entries, features]` that integer ids `[*]` name: f32 `[*, features]`. The table starts at N(0, 1).
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let tokens = g.input("tokens", I32, [8, 16]);
/// assert_eq!(nn::embedding(&g, "tokens", &tokens, 256, 64).ty().to_string(), "f32[8,16,64]");
/// ```
#[track_caller]
pub fn embedding(g: &Graph, name: &str, ids: &Tensor, entries: usize, features: usize) -> Tensor {
    Embedding::new(name, entries, features).apply(g, ids)
}

/// [`embedding`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let tokens = g.input("tokens", I32, [8, 16]);
/// let x = nn::Embedding::new("tokens", 256, 64).init(Init::Normal { mean: 0.0, std: 0.02 }).apply(&g, &tokens);
/// assert_eq!(x.ty().to_string(), "f32[8,16,64]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    name: String,
    entries: usize,
    features: usize,
    dtype: DType,
    init: Init,
}

impl Embedding {
    /// A table of f32 numbers.
    pub fn new(name: &str, entries: usize, features: usize) -> Self {
        let init = Init::Normal { mean: 0.0, std: 1.0 };
        Embedding { name: name.to_owned(), entries, features, dtype: DType::F32, init }
    }

    /// Another float dtype.
    pub fn dtype(self, dtype: DType) -> Self {
        Embedding { dtype, ..self }
    }

    /// Another start of the table.
    pub fn init(self, init: Init) -> Self {
        Embedding { init, ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, ids: &Tensor) -> Tensor {
        self.table(g).embedding(ids)
    }

    /// Builds the table `[entries, features]` alone, for a head that shares it:
    /// `x.linear(&table, None)` beside `table.embedding(&ids)`.
    #[track_caller]
    pub fn table(&self, g: &Graph) -> Tensor {
        let _scope = g.enter(&self.name);
        g.weight("weight", Type::new(self.dtype, [self.entries, self.features]), self.init.clone())
    }
}
