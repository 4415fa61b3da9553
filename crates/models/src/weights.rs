//! Weights from a safetensors file.

use crate::SmallModelError;
use half::f16;
use ndarray::{Array1, Array2};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// The components of a head; the width of a model is a multiple of it.
pub(crate) const HEAD_SIZE: usize = 32;

/// Of a transformer without biases. Matrices are `[outputs, inputs]`.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// `[tokens, width]`; the output uses it too.
    pub embedding: Array2<f32>,
    pub layers: Vec<LayerWeights>,
    /// `[width]`
    pub norm: Array1<f32>,
}

#[derive(Clone, Debug)]
pub(crate) struct LayerWeights {
    /// `[width]`
    pub attention_norm: Array1<f32>,
    /// `[3 * width, width]`: queries, keys, values, each head by head.
    pub qkv: Array2<f32>,
    /// `[width, width]`
    pub out: Array2<f32>,
    /// `[width]`
    pub mlp_norm: Array1<f32>,
    /// `[2 * hidden, width]`: what goes through SiLU, then what it is multiplied with.
    pub gate_up: Array2<f32>,
    /// `[width, hidden]`
    pub down: Array2<f32>,
}

impl Weights {
    /// The tensors `embedding.weight`, `norm.weight` and `layers.N.*`, from N = 0 as far as there are any.
    pub fn read(file: &SafeTensors<'_>) -> Result<Self, SmallModelError> {
        let embedding = matrix(file, "embedding.weight", [0, 0])?;
        let width = embedding.ncols();
        if embedding.nrows() == 0 || width == 0 || !width.is_multiple_of(HEAD_SIZE) {
            return Err(wrong("embedding.weight", &[0, HEAD_SIZE]));
        }
        let mut layers = Vec::new();
        while file.tensor(&format!("layers.{}.qkv.weight", layers.len())).is_ok() {
            layers.push(LayerWeights::read(file, layers.len(), width)?);
        }
        Ok(Self { embedding, layers, norm: vector(file, "norm.weight", width)? })
    }
}

impl LayerWeights {
    fn read(file: &SafeTensors<'_>, number: usize, width: usize) -> Result<Self, SmallModelError> {
        let name = |part: &str| format!("layers.{number}.{part}.weight");
        let down = matrix(file, &name("down"), [width, 0])?;
        Ok(Self {
            attention_norm: vector(file, &name("attention_norm"), width)?,
            qkv: matrix(file, &name("qkv"), [3 * width, width])?,
            out: matrix(file, &name("out"), [width, width])?,
            mlp_norm: vector(file, &name("mlp_norm"), width)?,
            gate_up: matrix(file, &name("gate_up"), [2 * down.ncols(), width])?,
            down,
        })
    }
}

fn vector(file: &SafeTensors<'_>, name: &str, length: usize) -> Result<Array1<f32>, SmallModelError> {
    let tensor = file.tensor(name).ok().filter(|tensor| tensor.shape() == [length]);
    Ok(tensor.and_then(|tensor| numbers(&tensor)).ok_or_else(|| wrong(name, &[length]))?.into())
}

/// A matrix of this shape, where 0 stands for any number.
fn matrix(file: &SafeTensors<'_>, name: &str, shape: [usize; 2]) -> Result<Array2<f32>, SmallModelError> {
    let read = || {
        let tensor = file.tensor(name).ok()?;
        let &[rows, columns] = tensor.shape() else { return None };
        let fits = [rows, columns].iter().zip(shape).all(|(&is, wanted)| wanted == 0 || is == wanted);
        Array2::from_shape_vec((rows, columns), numbers(&tensor)?).ok().filter(|_| fits)
    };
    read().ok_or_else(|| wrong(name, &shape))
}

fn numbers(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let bytes = tensor.data();
    match tensor.dtype() {
        Dtype::F16 => {
            Some(bytes.as_chunks().0.iter().map(|&bytes| f16::from_le_bytes(bytes).to_f32()).collect())
        }
        Dtype::F32 => Some(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()),
        _ => None,
    }
}

fn wrong(name: &str, shape: &[usize]) -> SmallModelError {
    SmallModelError::Tensor { name: name.to_owned(), shape: shape.to_vec() }
}
