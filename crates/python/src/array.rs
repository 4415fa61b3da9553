//! Arrays of other libraries, by what they say of themselves: numpy by its array interface, torch by
//! `data_ptr` and `stride`, everything else by the buffer protocol. No library is imported for that but
//! numpy, and numpy only for the last.
//!
//! (`Py_buffer` itself is stable from Python 3.11 on, and the wheel is for 3.10.)

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyWeakrefReference};

use crate::error::bad_buffer;

/// What an array holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// 32-bit words; signed ones have the same bits.
    Word,
    /// `float32`.
    F32,
    /// `float16`.
    F16,
    /// `bfloat16`.
    Bf16,
    /// `int64`.
    I64,
}

impl Item {
    const fn size(self) -> usize {
        match self {
            Self::Word | Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I64 => 8,
        }
    }

    /// By numpy's type string, or the name of torch's type.
    fn by_name(name: &str) -> Option<Self> {
        let native = |letters: &str| {
            let order = if cfg!(target_endian = "little") { '<' } else { '>' };
            name.strip_prefix([order, '=']) == Some(letters)
        };
        Some(match name {
            _ if native("u4") || native("i4") => Self::Word,
            _ if native("f4") => Self::F32,
            _ if native("f2") => Self::F16,
            _ if native("i8") => Self::I64,
            "torch.int32" | "torch.uint32" => Self::Word,
            "torch.float32" => Self::F32,
            "torch.float16" => Self::F16,
            "torch.bfloat16" => Self::Bf16,
            "torch.int64" => Self::I64,
            _ => return None,
        })
    }
}

/// An array in memory: where it is, and what keeps it there.
pub struct Array {
    /// The address of the first item, aligned for it; may be null where there are no items.
    pub address: usize,
    /// The lengths of its dimensions.
    pub shape: Vec<usize>,
    /// For each dimension the distance of two items, counted in items.
    pub strides: Vec<isize>,
    /// What it holds.
    pub item: Item,
    /// Whether it may be written to.
    pub is_writable: bool,
    /// Objects that keep the memory where it is while they live.
    _owners: Vec<Py<PyAny>>,
}

impl Array {
    /// The array that an object is.
    ///
    /// # Errors
    /// `TypeError` if it is none; `BufferError` if it is on a device, misaligned, or holds something else.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let array = if object.hasattr("data_ptr")? {
            Self::of_tensor(object)?
        } else if let Ok(interface) = object.getattr("__array_interface__") {
            Self::of_interface(object, interface.cast::<PyDict>()?)?
        } else {
            let view = PyMemoryView::from(object).map_err(|_| {
                let class = object.get_type();
                PyTypeError::new_err(format!("{class} is no array: give a numpy array or a tensor"))
            })?;
            let array = py.import("numpy")?.call_method1("asarray", (view,))?;
            Self::of_interface(&array, array.getattr("__array_interface__")?.cast::<PyDict>()?)?
        };
        if array.address % array.item.size() != 0 {
            let (address, size) = (array.address, array.item.size());
            return Err(bad_buffer(
                py,
                format!("the array begins at {address:#x}, which is not aligned to {size} bytes: copy it"),
            ));
        }
        Ok(array)
    }

    /// A tensor on the CPU.
    fn of_tensor(tensor: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = tensor.py();
        let device = tensor.getattr("device")?.str()?.to_string();
        if device != "cpu" {
            return Err(bad_buffer(
                py,
                format!("the tensor is on {device}; give one on the CPU, and copy it to the device"),
            ));
        }
        let item = item(py, &tensor.getattr("dtype")?.str()?.to_string())?;
        let mut owners = vec![tensor.clone().unbind()];
        // Its numpy twin shares the memory, and while it lives torch refuses to resize the storage.
        if let Ok(numpy) = tensor.getattr("numpy")
            && let Ok(twin) = numpy.call0()
        {
            owners.push(twin.unbind());
        }
        Ok(Self {
            address: tensor.call_method0("data_ptr")?.extract()?,
            shape: tensor.getattr("shape")?.try_iter()?.map(|n| n?.extract()).collect::<PyResult<_>>()?,
            strides: tensor.call_method0("stride")?.extract()?,
            item,
            is_writable: true,
            _owners: owners,
        })
    }

    /// An array with numpy's `__array_interface__`.
    fn of_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = object.py();
        let field = |name: &str| {
            let absent = || bad_buffer(py, format!("the array interface has no `{name}`"));
            interface.get_item(name)?.ok_or_else(absent)
        };
        let item = item(py, &field("typestr")?.extract::<String>()?)?;
        let shape: Vec<usize> = field("shape")?.extract()?;
        let (address, is_read_only) = field("data")?.extract::<(usize, bool)>()?;
        let strides = match interface.get_item("strides")?.filter(|strides| !strides.is_none()) {
            Some(strides) => strides.extract::<Vec<isize>>()?,
            None => in_rows(&shape, item.size()),
        };
        let size = item.size() as isize;
        if strides.iter().any(|stride| stride % size != 0) {
            return Err(bad_buffer(
                py,
                format!("the strides {strides:?} are not whole items: copy the array"),
            ));
        }
        // `numpy.ndarray.resize` refuses to move an array that has a weak reference.
        let mut owners = vec![object.clone().unbind()];
        owners.extend(PyWeakrefReference::new(object).ok().map(|weak| weak.into_any().unbind()));
        let strides = strides.iter().map(|stride| stride / size).collect();
        Ok(Self { address, shape, strides, item, is_writable: !is_read_only, _owners: owners })
    }

    /// This array as rows: one dimension is one row. How many there are, how long they are, and the distance
    /// of two. Rows must not overlap.
    pub fn rows(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        let (n_rows, width, stride, step) = match (&*self.shape, &*self.strides) {
            (&[width], &[step]) => (1, width, width as isize, step),
            (&[n_rows, width], &[stride, step]) => (n_rows, width, stride, step),
            _ => {
                let n = self.shape.len();
                let message = format!("the array has {n} dimensions; give one row, or rows [n, words]");
                return Err(bad_buffer(py, message));
            }
        };
        if width > 1 && step != 1 {
            let message =
                format!("the items of a row are {step} apart; give an array whose rows are contiguous");
            return Err(bad_buffer(py, message));
        }
        match usize::try_from(stride) {
            Ok(stride) if stride >= width || n_rows <= 1 => Ok((n_rows, width, stride.max(width))),
            _ => {
                let message =
                    format!("rows of {width} items are {stride} apart, so that they overlap: copy it");
                Err(bad_buffer(py, message))
            }
        }
    }
}

fn item(py: Python<'_>, name: &str) -> PyResult<Item> {
    let message =
        || format!("an array of `{name}`; use uint32 or int32 for masks, float32 for log-probabilities");
    Item::by_name(name).ok_or_else(|| bad_buffer(py, message()))
}

/// The strides in bytes of an array in row-major order.
fn in_rows(shape: &[usize], size: usize) -> Vec<isize> {
    let mut strides = vec![size as isize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at] as isize;
    }
    strides
}
