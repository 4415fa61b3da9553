//! Pointers of callers. What can be checked of one is: that it is not NULL, aligned, and that so many items
//! have room in an address space. The rest is the caller's promise, in `docs/c-api.md`.

use std::ffi::{CStr, c_char};

use crate::error::{Failure, anygram_code, anygram_error};

use anygram_code::ANYGRAM_BUFFER_TOO_SMALL;

fn check<T>(what: &str, pointer: *const T, length: usize) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    let bytes = length.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.map(|_| ()).ok_or_else(|| Failure::argument(format!("{what} cannot have {length} items")))
}

/// So many items. NULL will do for none.
///
/// # Safety
/// If it is not NULL, so many items can be read there as long as the result is used, and nobody writes to
/// them.
pub unsafe fn slice<'a, T: Copy>(what: &str, items: *const T, length: usize) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    check(what, items, length)?;
    // SAFETY: not NULL, aligned, of a size that exists; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(items, length) })
}

/// So many items to write to. NULL will do for none.
///
/// # Safety
/// If it is not NULL, so many items can be read and written there as long as the result is used, and nobody
/// else uses them.
pub unsafe fn slice_mut<'a, T: Copy>(
    what: &str,
    items: *mut T,
    length: usize,
) -> Result<&'a mut [T], Failure> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(what, items, length)?;
    // SAFETY: not NULL, aligned, of a size that exists; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(items, length) })
}

/// A text that ends with a zero.
///
/// # Safety
/// If it is not NULL, it ends with a zero, and nobody writes to it as long as the result is used.
pub unsafe fn text<'a>(what: &str, text: *const c_char) -> Result<&'a str, Failure> {
    check(what, text, 1)?;
    // SAFETY: not NULL; the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|error| Failure::argument(format!("{what} is not UTF-8: {error}")))
}

/// Writes a result.
///
/// # Safety
/// If it is not NULL, a value can be written there.
pub unsafe fn put<T>(what: &str, place: *mut T, value: T) -> Result<(), Failure> {
    check(what, place, 1)?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a result that the caller may not want: NULL then.
///
/// # Safety
/// As [`put`].
pub unsafe fn put_if_wanted<T>(what: &str, place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { put(what, place, value) }
}

/// Writes items into a buffer, and their number; if the buffer is too small only that.
///
/// # Safety
/// As [`slice_mut`] and [`put`].
pub unsafe fn put_all<T: Copy>(
    what: &str,
    items: &[T],
    (buffer, capacity, length): (*mut T, usize, *mut usize),
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe { put(&format!("the length of {what}"), length, items.len()) }?;
    if items.len() > capacity {
        let message = format!("{what} takes {} items, the buffer has {capacity}", items.len());
        return Err(Failure::new(ANYGRAM_BUFFER_TOO_SMALL, message));
    }
    // SAFETY: the caller's promise.
    unsafe { slice_mut(what, buffer, items.len()) }?.copy_from_slice(items);
    Ok(())
}

/// A struct of the caller that begins with its size, which may be that of an older or newer header. What an
/// older one does not have is zero.
///
/// # Safety
/// If it is not NULL, so many bytes as its first field says can be read there. All bytes zero are a value of
/// `T`, and so are those of any caller: `T` has integers and pointers only.
pub unsafe fn read_sized<T: Copy>(what: &str, given: *const T) -> Result<T, Failure> {
    check(what, given, 1)?;
    // SAFETY: not NULL and aligned; a struct begins with its size.
    let size = unsafe { given.cast::<usize>().read() };
    if size < size_of::<usize>() {
        return Err(Failure::argument(format!("{what}: set struct_size to the sizeof of the struct")));
    }
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the caller has `size` bytes, and the value has room for as many as are copied.
    unsafe {
        let bytes = given.cast::<u8>();
        bytes.copy_to_nonoverlapping(value.as_mut_ptr().cast::<u8>(), size.min(size_of::<T>()));
        Ok(value.assume_init())
    }
}

/// Writes an error, as much of it as the caller's header has; nothing where there is no place for it.
///
/// # Safety
/// If it is not NULL, so many bytes as its first field says can be written there.
pub unsafe fn write_sized(place: *mut anygram_error, error: &anygram_error) {
    if place.is_null() || !place.is_aligned() {
        return;
    }
    // SAFETY: neither NULL nor misaligned; the struct begins with its size, and has so many bytes. The size
    // itself stays as it is.
    unsafe {
        let size = place.cast::<usize>().read().min(size_of::<anygram_error>());
        let first = size_of::<usize>();
        if size > first {
            let from = std::ptr::from_ref(error).cast::<u8>().add(first);
            from.copy_to_nonoverlapping(place.cast::<u8>().add(first), size - first);
        }
    }
}

/// Writes only the code of an error.
///
/// # Safety
/// As [`write_sized`].
pub unsafe fn set_code(place: *mut anygram_error, code: anygram_code) {
    if place.is_null() || !place.is_aligned() {
        return;
    }
    // SAFETY: as in `write_sized`.
    unsafe {
        let end = std::mem::offset_of!(anygram_error, code) + size_of::<anygram_code>();
        if place.cast::<usize>().read() >= end {
            (&raw mut (*place).code).write(code);
        }
    }
}
