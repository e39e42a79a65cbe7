//! A transformer block of which the weights of attention and MLP are split in pairs: the first by columns, the
//! second by rows (Shoeybi et al., 2019, <https://arxiv.org/abs/1909.08053>).

use super::{assert_close, layout, noise, on_mesh, split};
use ferroflow_tracer::{
    Function, GradientTape, Result, Tensor, Variable,
    distribute::{CollectiveKind, MeshStrategy},
    function, ops,
};

const WIDTH: usize = 8;
const HEADS: usize = 4;
const HIDDEN: usize = 16;

/// The weights of a block.
#[derive(Clone)]
struct Block {
    query: Variable,
    key: Variable,
    value: Variable,
    context: Variable,
    expand: Variable,
    bias: Variable,
    contract: Variable,
    scale: Variable,
    offset: Variable,
}

fn ints(values: &[i32]) -> Tensor {
    ferroflow_ir::HostTensor::vector(values).unwrap().into()
}

impl Block {
    fn new() -> Result<Block> {
        let weight = |seed, rows, columns| {
            Variable::new((noise(&[rows, columns], seed) * Tensor::from(0.5f32))?)
        };
        Ok(Block {
            query: weight(1, WIDTH, WIDTH)?,
            key: weight(2, WIDTH, WIDTH)?,
            value: weight(3, WIDTH, WIDTH)?,
            context: weight(4, WIDTH, WIDTH)?,
            expand: weight(5, WIDTH, HIDDEN)?,
            bias: Variable::new(noise(&[HIDDEN], 6))?,
            contract: weight(7, HIDDEN, WIDTH)?,
            scale: Variable::new(noise(&[WIDTH], 8))?,
            offset: Variable::new(noise(&[WIDTH], 9))?,
        })
    }

    /// Splits the weights over `model`.
    fn annotate(&self, strategy: &MeshStrategy) -> Result<()> {
        let columns = layout(strategy, &["unsharded", "model"]);
        let rows = layout(strategy, &["model", "unsharded"]);
        for weight in [&self.query, &self.key, &self.value, &self.expand] {
            strategy.distribute(weight, &columns)?;
        }
        strategy.distribute(&self.context, &rows)?;
        strategy.distribute(&self.contract, &rows)
    }

    fn weights(&self) -> Vec<&Variable> {
        let Block { query, key, value, context, expand, bias, contract, scale, offset } = self;
        vec![query, key, value, context, expand, bias, contract, scale, offset]
    }

    fn norm(&self, x: &Tensor) -> Result<Tensor> {
        let last = Tensor::from(-1i32);
        let keep = ops::MeanAttrs { keep_dims: true };
        let mean = ops::mean_with(x, &last, &keep)?;
        let centred = (x - &mean)?;
        let variance = ops::mean_with(&ops::square(&centred)?, &last, &keep)?;
        let normal = (centred * ops::rsqrt(&(variance + Tensor::from(1e-5f32))?)?)?;
        (normal * self.scale.read()?)? + self.offset.read()?
    }

    /// The heads of a projection: `[batch, time, width]` to `[batch, heads, time, width / heads]`.
    fn heads(&self, x: &Tensor, weight: &Variable, dims: [i32; 2]) -> Result<Tensor> {
        let flat = ops::matmul(x, &weight.read()?)?;
        let [batch, time] = dims;
        let (heads, size) = (HEADS as i32, (WIDTH / HEADS) as i32);
        let parts = ops::reshape(&flat, &ints(&[batch, time, heads, size]))?;
        ops::transpose(&parts, &ints(&[0, 2, 1, 3]))
    }

    fn attention(&self, x: &Tensor, dims: [i32; 2]) -> Result<Tensor> {
        let flat = ops::reshape(x, &ints(&[dims[0] * dims[1], WIDTH as i32]))?;
        let query = self.heads(&flat, &self.query, dims)?;
        let key = self.heads(&flat, &self.key, dims)?;
        let value = self.heads(&flat, &self.value, dims)?;
        let other = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
        let scores = ops::batch_matmul_v2_with(&query, &key, &other)?;
        let scores = (scores * Tensor::from(0.7f32))?;
        let mixed = ops::batch_matmul_v2(&ops::softmax(&scores)?, &value)?;
        let mixed = ops::transpose(&mixed, &ints(&[0, 2, 1, 3]))?;
        let mixed = ops::reshape(&mixed, &ints(&[dims[0] * dims[1], WIDTH as i32]))?;
        let out = ops::matmul(&mixed, &self.context.read()?)?;
        ops::reshape(&out, &ints(&[dims[0], dims[1], WIDTH as i32]))
    }

    fn mlp(&self, x: &Tensor, dims: [i32; 2]) -> Result<Tensor> {
        let flat = ops::reshape(x, &ints(&[dims[0] * dims[1], WIDTH as i32]))?;
        let hidden = ops::matmul(&flat, &self.expand.read()?)?;
        let hidden = ops::tanh(&ops::bias_add(&hidden, &self.bias.read()?)?)?;
        let out = ops::matmul(&hidden, &self.contract.read()?)?;
        ops::reshape(&out, &ints(&[dims[0], dims[1], WIDTH as i32]))
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape().known().unwrap();
        let dims = [shape[0] as i32, shape[1] as i32];
        let x = (x + &self.attention(&self.norm(x)?, dims)?)?;
        &x + &self.mlp(&self.norm(&x)?, dims)?
    }
}

fn forward(block: &Block) -> Function<(Tensor,), Tensor> {
    let block = block.clone();
    function(move |x: Tensor| block.forward(&x))
}

/// A step of gradient descent; it returns the loss.
fn step(block: &Block) -> Function<(Tensor, Tensor), Tensor> {
    let block = block.clone();
    function(move |x: Tensor, y: Tensor| -> Result<Tensor> {
        let tape = GradientTape::new();
        let error = ops::square(&(block.forward(&x)? - y)?)?;
        let loss = ops::mean(&error, &ints(&[0, 1, 2]))?;
        let weights = block.weights();
        let gradients = tape.gradient(&loss, &weights)?;
        for (weight, gradient) in weights.iter().zip(gradients) {
            weight
                .assign_sub(&(gradient.expect("the loss depends on it") * Tensor::from(0.1f32))?)?;
        }
        Ok(loss)
    })
}

const DATA: [usize; 3] = [4, 3, WIDTH];

#[test]
fn a_block_takes_two_all_reduces() {
    for n in [2, 4] {
        on_mesh(&[("model", n)], |strategy| {
            let block = Block::new().unwrap();
            let (forward, x) = (forward(&block), noise(&DATA, 10));
            let expected = forward.call((&x,)).unwrap();
            block.annotate(strategy).unwrap();
            let x = split(strategy, &x, &["unsharded"; 3]);
            let y = strategy.call(&forward, std::slice::from_ref(&x)).unwrap();
            assert_close(&y[0].fetch().unwrap(), &expected, 1e-5);
            let program = strategy.program(&forward, &[x]).unwrap();
            let report = program.report();
            assert_eq!(report.count(CollectiveKind::AllReduce), 2, "{report}");
            assert_eq!(report.collectives.len(), 2, "{report}");
            assert_eq!(report.gathered().count(), 0, "{report}");
        });
    }
}

/// Steps of a block on one device and on a mesh: losses and weights are equal.
fn check_training(dims: &[(&str, usize)], specs: [&str; 3]) -> usize {
    on_mesh(dims, |strategy| {
        let (single, block) = (Block::new().unwrap(), Block::new().unwrap());
        if dims.iter().any(|(name, _)| *name == "model") {
            block.annotate(strategy).unwrap();
        }
        let (single_step, mesh_step) = (step(&single), step(&block));
        let (x, y) = (noise(&DATA, 20), noise(&DATA, 21));
        let (mesh_x, mesh_y) = (split(strategy, &x, &specs), split(strategy, &y, &specs));
        let args = [mesh_x, mesh_y];
        for _ in 0..3 {
            let expected = single_step.call((&x, &y)).unwrap();
            let loss = strategy.call(&mesh_step, &args).unwrap();
            assert_close(&loss[0].fetch().unwrap(), &expected, 1e-5);
        }
        for (single, own) in single.weights().iter().zip(block.weights()) {
            assert_close(&own.read().unwrap(), &single.read().unwrap(), 1e-5);
        }
        let program = strategy.program(&mesh_step, &args).unwrap();
        assert_eq!(program.report().gathered().count(), 0, "{}", program.report());
        program.report().count(CollectiveKind::AllReduce)
    })
}

#[test]
fn weights_in_pieces_learn_as_whole_ones_do() {
    // Two in the forward pass and two in the backward pass.
    assert_eq!(check_training(&[("model", 2)], ["unsharded"; 3]), 4);
    assert_eq!(check_training(&[("model", 4)], ["unsharded"; 3]), 4);
}

#[test]
fn batches_in_pieces_teach_as_whole_ones_do() {
    // A gradient of each of nine weights, and the loss.
    let all_reduces = check_training(&[("batch", 2)], ["batch", "unsharded", "unsharded"]);
    assert_eq!(all_reduces, 10);
}

#[test]
fn batches_and_weights_may_both_be_split() {
    let dims = [("batch", 2), ("model", 2)];
    check_training(&dims, ["batch", "unsharded", "unsharded"]);
}

/// The largest piece of a weight is a part of the whole.
#[test]
fn devices_have_parts_of_the_weights() {
    on_mesh(&[("model", 4)], |strategy| {
        let block = Block::new().unwrap();
        block.annotate(strategy).unwrap();
        let (mut whole, mut own) = (0, 0);
        for weight in block.weights() {
            whole += weight.read().unwrap().host().unwrap().len();
            // Weights that are not annotated are whole on every device.
            let weight = weight.owned().unwrap();
            let piece = if weight.layout().is_some() { 3 } else { 0 };
            own += weight.component(piece).unwrap().host().unwrap().len();
        }
        assert!(own * 10 <= whole * 3, "{own} of {whole}");
        let expand = block.expand.owned().unwrap();
        assert_eq!(expand.component(3).unwrap().shape().dims(), [WIDTH, HIDDEN / 4]);
        assert_eq!(block.expand.read().unwrap().shape().known().unwrap().dims(), [WIDTH, HIDDEN]);
    });
}
