//! The gradient of batch normalisation.

use super::{Batch, per_channel};
use crate::builder::Tensor;
use crate::ops::definition::Vjp;
use crate::ops::norm::{cotangent, total};

/// With x̂ the normalised x and h = g · weight, to every real x: rstd · (h − (Σ h + x̂ Σ h x̂) / n), the sums over all elements;
/// what reaches mean and variance themselves is spread over the real x. To padded x nothing.
pub fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let x = vjp.operands[0].widen();
    let (mean, rstd) = (&vjp.results[3], &vjp.results[4]);
    let batch = Batch::new(&x, vjp.operands.get(5), vjp.attributes);
    let channels = |t: &Tensor| t.as_channels(x.rank());
    let x = batch.real(&x);
    let centered = &x - channels(mean);
    let normal = &centered * channels(rstd);
    let g = cotangent(vjp, 0, |g| g);
    let weight = channels(&vjp.operands[1].cast(x.dtype()));
    let through = g.as_ref().map(|g| {
        let h = g * &weight;
        let shares = channels(&batch.share(&h)) + &normal * channels(&batch.share(&(&h * &normal)));
        (h - shares) * channels(rstd)
    });
    let (to_mean, to_variance) = to_statistics(vjp, &batch);
    let each = |c: &Tensor| channels(&(c / &batch.rows / batch.positions));
    let by_mean = to_mean.map(|c| each(&c).broadcast_to(x.shape()));
    let by_variance = to_variance.map(|c| centered * each(&(c * 2.0)));
    let to_x = total([through, by_mean, by_variance]).map(|c| batch.real(&c));
    let to_weight = g.as_ref().map(|g| per_channel(&(g * &normal)));
    let to_bias = g.as_ref().map(per_channel);
    let to_running = |result| cotangent(vjp, result, |c| c * (1.0 - &batch.momentum));
    let found = [to_x, to_weight, to_bias, to_running(1), to_running(2), None];
    let typed = found.into_iter().zip(vjp.operands);
    typed.map(|(cotangent, operand)| cotangent.map(|c| c.cast(operand.dtype()))).collect()
}

/// The cotangents of the batch's mean and biased variance, from those of the results that are made of them.
fn to_statistics(vjp: &Vjp, batch: &Batch) -> (Option<Tensor>, Option<Tensor>) {
    let rstd = &vjp.results[4];
    let to_mean = [cotangent(vjp, 1, |c| c * &batch.momentum), cotangent(vjp, 3, |c| c)];
    let to_variance = [
        cotangent(vjp, 2, |c| c * &batch.momentum * &batch.unbiasing),
        cotangent(vjp, 4, |c| c * rstd * rstd * rstd * -0.5),
    ];
    (total(to_mean), total(to_variance))
}
