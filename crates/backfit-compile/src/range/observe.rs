//! Calibration: what values really are.

use backfit_ir::interp::{Array, Data, Moment, Options, run_watched};
use backfit_ir::op::Binary;
use backfit_ir::{DType, Error, FuncId, Literal, Module, Op, ValueId};

/// Binary exponents from −128 to 127; smaller ones count as the smallest, larger ones as the largest.
const EXPONENTS: usize = 256;

/// What a value was over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The smallest finite element.
    pub low: f64,
    /// The largest finite element.
    pub high: f64,
    /// Elements in all.
    pub elements: u64,
    /// Elements that were infinite or NaN.
    pub not_finite: u64,
    /// Elements that were neither zero nor infinite nor NaN, by binary exponent.
    exponents: Vec<u64>,
    /// Of a sum or difference: elements, by how many leading bits of the operands cancelled.
    cancelled: [u64; 64],
}

impl Default for Observed {
    fn default() -> Self {
        let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
        Observed { low, high, elements: 0, not_finite: 0, exponents: vec![0; EXPONENTS], cancelled: [0; 64] }
    }
}

impl Observed {
    /// The largest finite magnitude; 0 where nothing was finite.
    pub fn magnitude(&self) -> f64 {
        if self.low <= self.high { self.low.abs().max(self.high.abs()) } else { 0.0 }
    }

    /// The share of elements other than zero whose magnitude is below a power of two.
    pub fn share_below(&self, power: f64) -> f64 {
        let below = (power.log2().ceil() + 128.0).clamp(0.0, EXPONENTS as f64) as usize;
        share(self.exponents[..below].iter().sum(), self.exponents.iter().sum())
    }

    /// The share of elements in which so many leading bits of the operands cancelled, but not all of them.
    pub fn share_cancelled(&self, bits: u32) -> f64 {
        share(self.cancelled[(bits as usize).min(63)..].iter().sum(), self.elements)
    }

    fn see(&mut self, value: f64) {
        self.elements += 1;
        if !value.is_finite() {
            self.not_finite += 1;
            return;
        }
        (self.low, self.high) = (self.low.min(value), self.high.max(value));
        if value != 0.0 {
            let exponent = value.abs().log2().floor() + 128.0;
            self.exponents[exponent.clamp(0.0, EXPONENTS as f64 - 1.0) as usize] += 1;
        }
    }

    fn see_sum(&mut self, operands: [f64; 2], sum: f64) {
        let size = operands[0].abs().max(operands[1].abs());
        if sum != 0.0 && sum.is_finite() && size.is_finite() && size > sum.abs() {
            self.cancelled[((size / sum.abs()).log2().floor() as usize).min(63)] += 1;
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// What all values of a program were over calibration runs. The interpreter runs it in f64, so that nothing is lost before
/// it is seen.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    functions: Vec<Vec<Option<Observed>>>,
    /// Runs so far.
    pub runs: usize,
}

impl Observations {
    /// What a value was; `None` where it was never computed. Parameters are not watched.
    pub fn of(&self, function: FuncId, value: ValueId) -> Option<&Observed> {
        self.functions.get(function.index())?.get(value.index())?.as_ref()
    }

    /// Runs a function on these arguments, and returns its results.
    ///
    /// # Errors
    /// Where the arguments are not of the parameters' types.
    pub fn run(&mut self, module: &Module, function: FuncId, arguments: &[Literal]) -> Result<Vec<Literal>, Error> {
        self.functions.resize_with(module.functions.len(), Vec::new);
        let arguments: Vec<Array> = arguments.iter().map(Array::from_literal).collect();
        let options = Options { double: true, flush_subnormals: false };
        let watch = &mut |moment: Moment| {
            let Moment::Ran { function: id, node: index, operands, results } = moment else { return };
            let f = module.function(id);
            let seen = &mut self.functions[id.index()];
            seen.resize(f.values.len(), None);
            for (value, result) in f.nodes[index].results.iter().zip(results) {
                let observed = seen[value.index()].get_or_insert_default();
                see(observed, &f.nodes[index].op, operands, result);
            }
        };
        let results = run_watched(module, function, &arguments, options, watch)?;
        self.runs += 1;
        Ok(results.iter().map(Array::to_literal).collect())
    }
}

fn see(observed: &mut Observed, op: &Op, operands: &[&Array], result: &Array) {
    match &result.data {
        Data::Float(values) => values.iter().for_each(|&v| observed.see(v)),
        Data::Int(values) if result.ty.dtype == DType::U64 => {
            values.iter().for_each(|&v| observed.see(v as u64 as f64))
        }
        Data::Int(values) => values.iter().for_each(|&v| observed.see(v as f64)),
    }
    let (Op::Binary(Binary::Add | Binary::Sub), Data::Float(sums)) = (op, &result.data) else { return };
    let pairs = operands[0].as_floats().iter().zip(operands[1].as_floats());
    pairs.zip(sums).for_each(|((&a, &b), &sum)| observed.see_sum([a, b], sum));
}
