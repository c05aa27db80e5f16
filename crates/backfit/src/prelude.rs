//! Everything that a training script uses: `use backfit::prelude::*;`.

pub use crate::{
    Adafactor, Adam, AdamW, Batch, Batches, Checkpoints, Clip, Compile, Cpu, DType, Dataset, Event, FitOptions, Graph,
    Group, Init, Lion, Literal, Lora, LossScale, Monitor, Normalizer, Policy, RmsProp, Schedule, Sgd, Shuttle, Source,
    Stopped, Taps, Target, Tensor, TrainStep, Trainer, Type, datasets, nn,
};
pub use backfit_ir::ops::conv_transpose2d::ConvTranspose2d;
pub use backfit_ir::ops::conv2d::Conv2d;
pub use backfit_ir::ops::cross_entropy::CrossEntropy;
pub use backfit_ir::ops::reduction::{LossOptions, Reduction};
pub use backfit_ir::ops::rotary_embedding::Rotary;
pub use backfit_ir::ops::scaled_dot_product_attention::Attention;

macro_rules! dtypes {
    ($($name:ident $variant:ident)*) => {
        $(
            #[doc = concat!("`DType::", stringify!($variant), "`.")]
            pub const $name: DType = DType::$variant;
        )*
    };
}

dtypes! {
    F64 F64 F32 F32 F16 F16 BF16 BF16
    I64 I64 I32 I32 I16 I16 I8 I8
    U64 U64 U32 U32 U16 U16 U8 U8
    BOOL Bool
}
