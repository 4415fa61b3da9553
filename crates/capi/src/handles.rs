//! The objects of callers.
//!
//! A handle is a number in the shape of a pointer: the place of an object in a table, and how often that
//! place was used. Nobody reads the memory that it seems to point to. So a handle that was freed, or is of
//! another kind, or was never given, is found out, and never used. Cost of a look-up: two steps in a table
//! that grows in pieces, and a lock that nobody else wants.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Failure, anygram_code};

use anygram_code::ANYGRAM_BAD_HANDLE;

/// What C sees of an object of a kind: a type of its own, so that compilers tell handles apart.
pub trait Handle {
    /// The object behind it.
    type Object: Any + Send + Sync;
    /// For messages.
    const NAME: &'static str;
}

#[derive(Default)]
struct Slot {
    /// How often the place was given away.
    uses: usize,
    object: Option<Arc<dyn Any + Send + Sync>>,
}

static SLOTS: boxcar::Vec<Mutex<Slot>> = boxcar::Vec::new();

/// Places that are free.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Half of a handle is the place, half how often it was used.
const BITS: u32 = usize::BITS / 2;
const MOST: usize = (1 << BITS) - 1;

/// A lock. After a panic the value is as it was after its last step.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn split<H>(handle: *const H) -> (usize, usize) {
    let number = handle.addr();
    (number & MOST, number >> BITS)
}

/// Keeps an object; returns its handle, which is never NULL.
pub fn keep<H: Handle>(object: H::Object) -> Result<*mut H, Failure> {
    let place = lock(&FREE).pop().unwrap_or_else(|| SLOTS.push(Mutex::default()));
    let slot = SLOTS.get(place).filter(|_| place <= MOST);
    let slot = slot.ok_or_else(|| Failure::argument(format!("there are {MOST} objects: free some")))?;
    let mut slot = lock(slot);
    slot.uses += 1;
    slot.object = Some(Arc::new(object));
    Ok(std::ptr::without_provenance_mut(slot.uses << BITS | place))
}

fn bad<H: Handle>(handle: *const H) -> Failure {
    let name = H::NAME;
    let message = match handle.is_null() {
        true => format!("the {name} is NULL"),
        false => format!("the handle is not that of a {name}, or the {name} was freed"),
    };
    Failure::new(ANYGRAM_BAD_HANDLE, message)
}

/// The object of a handle.
pub fn get<H: Handle>(handle: *const H) -> Result<Arc<H::Object>, Failure> {
    let (place, uses) = split(handle);
    let slot = SLOTS.get(place).map(lock).filter(|slot| slot.uses == uses);
    let object = slot.and_then(|slot| slot.object.clone());
    object.and_then(|object| object.downcast().ok()).ok_or_else(|| bad(handle))
}

/// Lets go of an object. It is dropped when no other thread is in a call with it.
pub fn free<H: Handle>(handle: *const H) -> Result<(), Failure> {
    get(handle)?;
    let (place, uses) = split(handle);
    let object = SLOTS.get(place).and_then(|slot| {
        let mut slot = lock(slot);
        if slot.uses == uses { slot.object.take().map(|object| (object, slot.uses)) } else { None }
    });
    // Another thread was quicker.
    let (object, uses) = object.ok_or_else(|| bad(handle))?;
    // A place that was used as often as can be told is not used again.
    if uses < MOST {
        lock(&FREE).push(place);
    }
    drop(object);
    Ok(())
}
