//! The network: two convolutions, each halved, and a layer of ten.

use ferroflow::{
    Tensor, Variable,
    ir::DType,
    ops,
    tracer::{Result, initializers::Initializer},
};

/// Weights. Clones are the same.
#[derive(Clone)]
pub(crate) struct Network {
    variables: Vec<Variable>,
}

impl Network {
    /// A network whose first weights are drawn by a seed.
    pub(crate) fn new(seed: i64) -> Result<Network> {
        let shapes: [&[usize]; 3] = [&[3, 3, 1, 16], &[3, 3, 16, 32], &[128, 10]];
        let mut variables = Vec::new();
        for (layer, shape) in (0..).zip(shapes) {
            let kernel = Initializer::GLOROT_UNIFORM.seeded(DType::F32, shape, [seed, layer])?;
            let bias = Initializer::Zeros.seeded(DType::F32, &shape[shape.len() - 1..], [0, 0])?;
            variables.push(Variable::new(kernel)?);
            variables.push(Variable::new(bias)?);
        }
        Ok(Network { variables })
    }

    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// How much each image looks like each digit: `[n, 8, 8, 1]` → `[n, 10]`.
    pub(crate) fn logits(&self, images: &Tensor) -> Result<Tensor> {
        let [kernel_1, bias_1, kernel_2, bias_2, kernel, bias] = &self.variables[..] else {
            unreachable!("a network is made with six variables");
        };
        let x = convolve(images, kernel_1, bias_1)?;
        let x = convolve(&x, kernel_2, bias_2)?;
        let x = x.reshape(&[-1, 128])?;
        x.matmul(kernel)? + bias
    }
}

/// Convolves, and takes the largest of each two by two.
fn convolve(x: &Tensor, kernel: &Variable, bias: &Variable) -> Result<Tensor> {
    let x = ops::conv2d(x, &kernel.read()?, &[1, 1, 1, 1], "SAME")?;
    let x = ops::bias_add(&x, &bias.read()?)?.relu()?;
    ops::max_pool(&x, &[1, 2, 2, 1], &[1, 2, 2, 1], "VALID")
}
