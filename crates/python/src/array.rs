//! Arrays of other libraries, by what they say of themselves: numpy by its array interface (that of C, which
//! takes a fraction of a microsecond), torch by `data_ptr` and `stride`, everything else by the buffer
//! protocol. No library is imported for that but numpy, and numpy only for the last.
//!
//! (`Py_buffer` itself is stable from Python 3.11 on, and the wheel is for 3.10.)

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyMemoryView, PyType, PyWeakrefReference};

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

/// An array in memory. It is there while this thread has the interpreter's lock and the object lives, and
/// with [`Array::kept`] as long as this value.
pub struct Array {
    /// The address of the first item, aligned for it; may be null where there are no items.
    pub address: usize,
    n_dimensions: usize,
    /// The lengths of the first two dimensions.
    lengths: [usize; 2],
    /// For each of these the distance of two items, counted in items.
    strides: [isize; 2],
    /// What it holds.
    pub item: Item,
    /// Whether it may be written to.
    pub is_writable: bool,
    /// Objects that keep the memory where it is while they live.
    owners: Vec<Py<PyAny>>,
}

/// `PyArrayInterface` of numpy's array interface for C, version 3, which never changes.
#[repr(C)]
struct Interface {
    two: c_int,
    n_dimensions: c_int,
    kind: c_char,
    item_size: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *const c_void,
    description: *const c_void,
}

impl Interface {
    /// Flags of numpy.
    const NATIVE_ORDER: c_int = 0x200;
    const WRITABLE: c_int = 0x400;
}

/// The class of numpy's arrays; nothing if numpy was not imported, so that no object is one.
fn numpy_array(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if let Some(class) = CLASS.get(py) {
        return Some(class.bind(py));
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?;
    let class = modules.get_item("numpy").ok()?.getattr("ndarray").ok()?.cast_into::<PyType>().ok()?;
    Some(CLASS.get_or_init(py, || class.unbind()).bind(py))
}

impl Array {
    /// The array that an object is.
    ///
    /// # Errors
    /// `TypeError` if it is none; `BufferError` if it is on a device, misaligned, or holds something else.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let is_numpy = numpy_array(py).is_some_and(|class| object.is_instance(class).unwrap_or(false));
        let array = if is_numpy {
            Self::of_numpy(object)?
        } else if object.hasattr("data_ptr")? {
            Self::of_tensor(object)?
        } else if let Ok(interface) = object.getattr("__array_interface__") {
            Self::of_interface(interface.cast::<PyDict>()?)?
        } else {
            let view = PyMemoryView::from(object).map_err(|_| {
                let class = object.get_type();
                PyTypeError::new_err(format!("{class} is no array: give a numpy array or a tensor"))
            })?;
            let array = py.import("numpy")?.call_method1("asarray", (view,))?;
            let mut array = Self { owners: vec![array.clone().unbind()], ..Self::of_numpy(&array)? };
            array.owners.push(object.clone().unbind());
            array
        };
        if !array.address.is_multiple_of(array.item.size()) {
            let (address, size) = (array.address, array.item.size());
            return Err(bad_buffer(
                py,
                format!("the array begins at {address:#x}, which is not aligned to {size} bytes: copy it"),
            ));
        }
        Ok(array)
    }

    /// The same, and its memory stays where it is as long as this value.
    pub fn kept(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // `numpy.ndarray.resize` refuses to move an array that has a weak reference. Before the address is
        // asked for: it is final then.
        let weak = PyWeakrefReference::new(object).ok();
        let mut array = Self::of(object)?;
        array.owners.push(object.clone().unbind());
        array.owners.extend(weak.map(|weak| weak.into_any().unbind()));
        // The numpy twin of a tensor shares the memory, and while it lives torch refuses to resize the
        // storage.
        if object.hasattr("data_ptr")?
            && let Ok(twin) = object.getattr("numpy").and_then(|numpy| numpy.call0())
        {
            array.owners.push(twin.unbind());
        }
        Ok(array)
    }

    /// An array of numpy.
    fn of_numpy(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let capsule = object.getattr(intern!(py, "__array_struct__"))?.cast_into::<PyCapsule>()?;
        let interface = capsule.pointer_checked(None)?.cast::<Interface>();
        // SAFETY: `object` is an instance of `numpy.ndarray`, whose capsules point at such a structure for as
        // long as they live, and `capsule` lives to the end of this function.
        let interface = unsafe { interface.as_ref() };
        let (kind, size) = (interface.kind as u8, interface.item_size as usize);
        let is_native = interface.flags & Interface::NATIVE_ORDER != 0;
        let item = match (kind, size) {
            (b'u' | b'i', 4) if is_native => Item::Word,
            (b'f', 4) if is_native => Item::F32,
            (b'f', 2) if is_native => Item::F16,
            (b'i', 8) if is_native => Item::I64,
            _ => return Err(wrong_item(py, &object.getattr("dtype")?.getattr("str")?.extract::<String>()?)),
        };
        let n_dimensions = interface.n_dimensions as usize;
        let (mut lengths, mut strides) = ([0; 2], [0; 2]);
        for at in 0..n_dimensions.min(2) {
            // SAFETY: the structure has so many lengths and strides.
            let (length, stride) = unsafe { (*interface.shape.add(at), *interface.strides.add(at)) };
            lengths[at] = length as usize;
            strides[at] = in_items(py, stride, item)?;
        }
        let is_writable = interface.flags & Interface::WRITABLE != 0;
        let address = interface.data as usize;
        Ok(Self { address, n_dimensions, lengths, strides, item, is_writable, owners: Vec::new() })
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
        let shape = tensor.getattr("shape")?.try_iter()?.map(|n| n?.extract());
        let shape: Vec<usize> = shape.collect::<PyResult<_>>()?;
        let strides: Vec<isize> = tensor.call_method0("stride")?.extract()?;
        let address = tensor.call_method0("data_ptr")?.extract()?;
        Self::new(py, address, (&shape, &strides), item, true)
    }

    fn new(
        py: Python<'_>,
        address: usize,
        (shape, strides): (&[usize], &[isize]),
        item: Item,
        is_writable: bool,
    ) -> PyResult<Self> {
        if shape.len() != strides.len() {
            let (n_lengths, n_strides) = (shape.len(), strides.len());
            return Err(bad_buffer(py, format!("the array has {n_lengths} lengths and {n_strides} strides")));
        }
        let n_dimensions = shape.len();
        let first = |at: usize| (shape.get(at).copied(), strides.get(at).copied());
        let [(length, stride), (next_length, next_stride)] = [first(0), first(1)];
        let lengths = [length.unwrap_or(0), next_length.unwrap_or(0)];
        let strides = [stride.unwrap_or(0), next_stride.unwrap_or(0)];
        Ok(Self { address, n_dimensions, lengths, strides, item, is_writable, owners: Vec::new() })
    }

    /// An array with numpy's `__array_interface__`.
    fn of_interface(interface: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = interface.py();
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
        let strides =
            strides.iter().map(|&stride| in_items(py, stride, item)).collect::<PyResult<Vec<_>>>()?;
        Self::new(py, address, (&shape, &strides), item, !is_read_only)
    }

    /// The lengths of its dimensions, of two at most.
    pub fn shape(&self) -> &[usize] {
        &self.lengths[..self.n_dimensions.min(2)]
    }

    /// This array as rows: one dimension is one row. How many there are, how long they are, and the distance
    /// of two. Rows must not overlap.
    pub fn rows(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        let ([length, next_length], [stride, next_stride]) = (self.lengths, self.strides);
        let (n_rows, width, stride, step) = match self.n_dimensions {
            1 => (1, length, length as isize, stride),
            2 => (length, next_length, stride, next_stride),
            n => {
                let message = format!("the array has {n} dimensions; give one row, or rows [n, words]");
                return Err(bad_buffer(py, message));
            }
        };
        if n_rows > 0 && width > 1 && step != 1 {
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
    Item::by_name(name).ok_or_else(|| wrong_item(py, name))
}

fn wrong_item(py: Python<'_>, name: &str) -> PyErr {
    let message = "use uint32 or int32 for masks, float32 for log-probabilities";
    bad_buffer(py, format!("an array of `{name}`; {message}"))
}

/// A stride in bytes, in items.
fn in_items(py: Python<'_>, stride: isize, item: Item) -> PyResult<isize> {
    let size = item.size() as isize;
    match stride % size {
        0 => Ok(stride / size),
        _ => Err(bad_buffer(py, format!("items are {stride} bytes apart, not whole items: copy the array"))),
    }
}

/// The strides in bytes of an array in row-major order.
fn in_rows(shape: &[usize], size: usize) -> Vec<isize> {
    let mut strides = vec![size as isize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at] as isize;
    }
    strides
}
