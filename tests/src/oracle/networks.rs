//! The oracle's models, built from operators.

use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::ops::conv2d::Conv2d;
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::ops::scaled_dot_product_attention::Attention;
use backfit_ir::{Graph, Init, Tensor};
use std::collections::BTreeMap;

const EPSILON: f64 = 1e-5;

/// A network's weights, and what it computes beside the logits.
pub struct Network<'a> {
    /// Where it is built.
    pub g: &'a Graph,
    /// By name.
    pub weights: &'a BTreeMap<String, Tensor>,
    /// Batch statistics by name, the variance biased.
    pub statistics: Vec<(String, Tensor)>,
}

impl Network<'_> {
    /// The logits of the model of this name.
    pub fn logits(&mut self, model: &str, x: &Tensor) -> Tensor {
        match model {
            "mlp" => self.linear("fc2", &self.linear("fc1", x).gelu()),
            "cnn" => self.cnn(x),
            "transformer" => self.transformer(x),
            "llama" => self.llama(x),
            other => panic!("there is no model '{other}'"),
        }
    }

    fn weight(&self, name: &str) -> &Tensor {
        &self.weights[&format!("{name}.weight")]
    }

    fn bias(&self, name: &str) -> Option<&Tensor> {
        self.weights.get(&format!("{name}.bias"))
    }

    fn linear(&self, name: &str, x: &Tensor) -> Tensor {
        x.linear(self.weight(name), self.bias(name))
    }

    fn layer_norm(&self, name: &str, x: &Tensor) -> Tensor {
        x.layer_norm(Some(self.weight(name)), self.bias(name), EPSILON)
    }

    fn rms_norm(&self, name: &str, x: &Tensor) -> Tensor {
        x.rms_norm(Some(self.weight(name)), EPSILON)
    }

    fn cnn(&mut self, x: &Tensor) -> Tensor {
        let h = self.block(1, x).max_pool2d([2, 2], [2, 2], [0, 0]);
        let h = self.block(2, &h).global_avg_pool2d().flatten(1);
        self.linear("fc", &h)
    }

    /// Convolution, batch norm with momentum 1, so that the running statistics are the batch's, and ReLU.
    fn block(&mut self, index: usize, x: &Tensor) -> Tensor {
        let (conv, bn) = (format!("conv{index}"), format!("bn{index}"));
        let options = Conv2d { padding: [1, 1], ..Conv2d::default() };
        let x = x.conv2d(self.weight(&conv), self.bias(&conv), options);
        let (weight, bias) = (self.weight(&bn), self.bias(&bn).expect("a bias"));
        let running_mean = &self.g.state(&format!("{bn}.running_mean"), weight.ty().clone(), Init::ZEROS);
        let running_var = &self.g.state(&format!("{bn}.running_var"), weight.ty().clone(), Init::ONES);
        let parameters = BatchNormParameters { weight, bias, running_mean, running_var };
        let out = x.batch_norm(parameters, None, 1.0, EPSILON);
        let count = (x.shape().elements() / x.dim(1)) as f64;
        self.statistics.push((format!("{bn}.mean"), out.running_mean));
        self.statistics.push((format!("{bn}.var"), out.running_var * ((count - 1.0) / count)));
        out.y.relu()
    }

    /// Projections of x to queries, keys and values, `[B, H, S, D]`.
    fn heads(&self, x: &Tensor, heads: [usize; 3]) -> [Tensor; 3] {
        let split = |name: &str, heads: usize| {
            let y = self.linear(&format!("attn.{name}"), x);
            y.reshape([y.dim(0), y.dim(1), heads, y.dim(2) / heads]).transpose(&[0, 2, 1, 3])
        };
        [split("q", heads[0]), split("k", heads[1]), split("v", heads[2])]
    }

    fn attention(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
        let y = q.scaled_dot_product_attention(k, v, Attention { causal: true, ..Attention::default() });
        self.linear("attn.o", &y.transpose(&[0, 2, 1, 3]).flatten(2))
    }

    fn transformer(&self, ids: &Tensor) -> Tensor {
        let x = self.weight("tok").embedding(ids) + self.weight("pos");
        let [q, k, v] = self.heads(&self.layer_norm("ln1", &x), [4; 3]);
        let x = x + self.attention(&q, &k, &v);
        let h = self.linear("mlp.fc1", &self.layer_norm("ln2", &x)).gelu_tanh();
        let x = x + self.linear("mlp.fc2", &h);
        self.linear("head", &self.layer_norm("lnf", &x))
    }

    fn llama(&self, ids: &Tensor) -> Tensor {
        let x = self.weight("tok").embedding(ids);
        let [q, k, v] = self.heads(&self.rms_norm("attn_norm", &x), [4, 2, 2]);
        let turned = |t: &Tensor| t.rotary_embedding(Rotary::default());
        let x = x + self.attention(&turned(&q), &turned(&k), &v);
        let h = self.rms_norm("mlp_norm", &x);
        let h = self.linear("mlp.gate", &h).silu() * self.linear("mlp.up", &h);
        let x = x + self.linear("mlp.down", &h);
        self.linear("head", &self.rms_norm("norm", &x))
    }
}
