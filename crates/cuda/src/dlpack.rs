//! Masks of a device as DLPack tensors, for frameworks that take them without a copy.
//!
//! The structures are those of DLPack 0.8 (`dlpack.h`), which its consumers have kept: a tensor of
//! `[rows, words]` numbers of 32 bits on a CUDA device. A consumer calls `deleter` once when it is done. The
//! memory of the masks stays the pool's: the tensor keeps the pool alive, and the next search writes over it.
//! Producer and consumer have to be on one stream, or the consumer has to wait for the pool's.

#![allow(unsafe_code, reason = "a C interface: memory passes hands by address")]

use std::ffi::c_void;

use crate::recognizer::SharedCharts;
use crate::search::DeviceMasks;

/// `DLDevice`: a kind (2 is CUDA, 1 the CPU) and a number.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// `DLDeviceType`.
    pub kind: i32,
    /// Which of them.
    pub number: i32,
}

/// `DLDataType`: a code (0 is signed, 1 unsigned), bits, lanes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// 1.
    pub lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct Tensor {
    /// Where the numbers are, as the device counts.
    pub data: *mut c_void,
    /// Whose memory it is.
    pub device: Device,
    /// Dimensions.
    pub n_dimensions: i32,
    /// The type of the numbers.
    pub data_type: DataType,
    /// Lengths.
    pub shape: *mut i64,
    /// Numbers from one to the next, by dimension.
    pub strides: *mut i64,
    /// Bytes from `data` to the first.
    pub byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensor {
    /// The tensor.
    pub tensor: Tensor,
    /// What the producer keeps.
    pub context: *mut c_void,
    /// To be called once with the address of this structure.
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

/// What a tensor keeps alive: lengths, strides, and the pool.
struct Kept {
    shape: [i64; 2],
    strides: [i64; 2],
    _charts: SharedCharts,
}

/// Masks as a tensor of signed numbers of 32 bits, as serving engines have them. Whoever takes it calls its
/// deleter, or leaks it.
pub fn export(masks: DeviceMasks, device: Device, charts: &SharedCharts) -> Box<ManagedTensor> {
    let kept = Box::into_raw(Box::new(Kept {
        shape: [masks.n_rows as i64, masks.n_words as i64],
        strides: [masks.stride as i64, 1],
        _charts: charts.clone(),
    }));
    // SAFETY: `kept` was just made by `Box::into_raw`, so it is valid, and nobody else has it; only addresses
    // are taken.
    let (shape, strides) = unsafe { ((&raw mut (*kept).shape).cast(), (&raw mut (*kept).strides).cast()) };
    Box::new(ManagedTensor {
        tensor: Tensor {
            data: std::ptr::with_exposed_provenance_mut(masks.address as usize),
            device,
            n_dimensions: 2,
            data_type: DataType { code: 0, bits: 32, lanes: 1 },
            shape,
            strides,
            byte_offset: 0,
        },
        context: kept.cast(),
        deleter: Some(delete),
    })
}

/// Gives back what a tensor keeps, and the tensor.
unsafe extern "C" fn delete(tensor: *mut ManagedTensor) {
    // SAFETY: DLPack has the consumer call this once with the address that it was given, which is that of a
    // box made by `export`, and so is its context; neither is used after.
    unsafe {
        let tensor = Box::from_raw(tensor);
        drop(Box::from_raw(tensor.context.cast::<Kept>()));
    }
}
