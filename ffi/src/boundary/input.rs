//! Inputs: structs in memory of C that begin with their size and grow at their end.
//!
//! Invariant: Rust reads an input only as a copy. The struct of C may be shorter or longer than the struct here, so there
//! is no reference to it. Members that the struct of C does not have are 0 in the copy, which means "not given".
//!
//! To add a member to an input, add it at the end of the struct. It must read 0 as "not given". It must leave no padding
//! before or after it: programs leave any bytes in padding. A later member in the padding would read them, and an older
//! library would refuse them.

use std::{mem, ptr, slice};

use crate::boundary::failure::Failure;

/// No input is larger: a larger size is a variable that was not set.
const MAX_SIZE: usize = 4096;

/// A struct that C fills in, with its size as the first member.
///
/// # Safety
/// The struct is `repr(C)` and begins with `size: usize`. Zeros are a valid value of every member.
pub(crate) unsafe trait Input: Copy {
    /// The size of the struct in version 0.1 in bytes.
    const FIRST_SIZE: usize;
}

/// Declares inputs, each with the last member that it has in version 0.1: `inputs!(tsq_new_space: id);`. A member that a
/// later version adds does not change this line.
macro_rules! inputs {
    ($($input:ident: $last:ident),+) => {$(
        // SAFETY: the assertions check the place and the type of `size`; the members are numbers, pointers, callbacks and
        // values that may be uninitialised, for which zeros are valid.
        unsafe impl $crate::boundary::Input for $input {
            const FIRST_SIZE: usize = std::mem::offset_of!($input, $last)
                + $crate::boundary::input::size_of_member(|input: &$input| &input.$last);
        }

        const _: () = {
            assert!(std::mem::offset_of!($input, size) == 0, "the size is the first member");
            assert!($crate::boundary::input::size_of_member::<$input, usize>(|input| &input.size) == size_of::<usize>());
            let first = <$input as $crate::boundary::Input>::FIRST_SIZE;
            assert!(first.is_multiple_of(align_of::<$input>()), "no padding follows the last member of version 0.1");
        };
    )+};
}

pub(crate) use inputs;

/// The size of the member that a function returns.
pub(crate) const fn size_of_member<T, Member>(_: fn(&T) -> &Member) -> usize {
    size_of::<Member>()
}

/// A required input, converted by `read`. `read` names members alone; the failure gets the name of the input here.
///
/// # Safety
/// `input` is NULL or points at its `size` readable bytes; where `size` is 0, at those of version 0.1.
pub(crate) unsafe fn input<T: Input, R>(
    input: *const T,
    argument: &str,
    read: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    check_address(input, argument)?;
    // SAFETY: not NULL, aligned; readable by the caller's promise.
    let input = unsafe { copy_checked(input, MAX_SIZE) };
    input.and_then(|input| read(&input)).map_err(|failure| failure.inside(argument))
}

/// An optional input, converted by `read`; `None` for NULL.
///
/// # Safety
/// As for [`input`].
pub(crate) unsafe fn optional_input<T: Input, R>(
    input: *const T,
    argument: &str,
    read: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<Option<R>, Failure> {
    if input.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise, passed on.
    unsafe { self::input(input, argument, read) }.map(Some)
}

/// An array of inputs that are `item_size` bytes apart, converted in order.
///
/// # Safety
/// `items` is NULL or points at `len` items of `item_size` readable bytes.
pub(crate) unsafe fn input_array<T: Input, R>(
    items: *const T,
    len: usize,
    item_size: usize,
    argument: &str,
    mut read: impl FnMut(&T) -> Result<R, Failure>,
) -> Result<Vec<R>, Failure> {
    check_size::<T>(item_size, "item_size")?;
    if len == 0 {
        return Ok(Vec::new());
    }
    check_address(items, argument)?;
    if len > isize::MAX as usize / item_size {
        return Err(Failure::invalid_input(format!("Argument {argument} has an impossible length")));
    }
    let item = |index| {
        // SAFETY: the item is inside of the array by the caller's promise. The array is aligned, and `item_size` is a
        // multiple of the alignment.
        let item = unsafe { copy_checked(items.byte_add(index * item_size), item_size) };
        let inside = |failure: Failure| failure.inside(&format!("{argument}[{index}]")).at_row(index);
        item.and_then(|item| read(&item)).map_err(inside)
    };
    (0..len).map(item).collect()
}

/// A copy of an input. Failures name the member `size` alone.
///
/// # Safety
/// `input` is aligned and points at its `size` readable bytes, or at those of version 0.1 where `size` is 0.
unsafe fn copy_checked<T: Input>(input: *const T, max_size: usize) -> Result<T, Failure> {
    // SAFETY: `size` is the first member, and every input has it.
    let size = match unsafe { input.cast::<usize>().read() } {
        0 => T::FIRST_SIZE,
        size => size,
    };
    check_size::<T>(size, "size")?;
    if size > max_size {
        return Err(Failure::invalid_input(format!(
            "Argument size is {size}, and the items are {max_size} bytes apart"
        )));
    }
    let known = size_of::<T>().min(size);
    // SAFETY: `size` bytes are readable by the caller's promise.
    let unknown = unsafe { slice::from_raw_parts(input.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::invalid_input(format!(
            "Argument size is {size}, and a member after byte {known} is not 0: the library is older than the header and \
             does not know this member"
        )));
    }
    // SAFETY: zeros are a valid value by the promise of the trait.
    let mut copy: T = unsafe { mem::zeroed() };
    // SAFETY: `known` bytes are readable at `input`, and `copy` has as many.
    unsafe { ptr::copy_nonoverlapping(input.cast::<u8>(), (&raw mut copy).cast::<u8>(), known) };
    Ok(copy)
}

/// Refuses a size that is too small, not aligned, or over [`MAX_SIZE`].
fn check_size<T: Input>(size: usize, argument: &str) -> Result<(), Failure> {
    if size < T::FIRST_SIZE {
        return Err(Failure::invalid_input(format!(
            "Argument {argument} is {size}, less than the {} bytes of the struct: set it to sizeof",
            T::FIRST_SIZE
        )));
    }
    if size > MAX_SIZE || !size.is_multiple_of(align_of::<T>()) {
        return Err(Failure::invalid_input(format!(
            "Argument {argument} is {size}, not the size of a struct: set it to sizeof"
        )));
    }
    Ok(())
}

fn check_address<T>(address: *const T, argument: &str) -> Result<(), Failure> {
    if address.is_null() {
        return Err(Failure::null(argument));
    }
    if !address.is_aligned() {
        return Err(Failure::invalid_input(format!("Argument {argument} has an impossible address")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that has got the member `tags` after version 0.1.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct tsq_thing {
        size: usize,
        name: usize,
        tags: usize,
    }

    inputs!(tsq_thing: name);

    const FIRST: usize = 2 * size_of::<usize>();
    const NOW: usize = size_of::<tsq_thing>();

    /// The members `name` and `tags`, or the message of the failure. `memory` is read as far as its size says.
    fn read(memory: &[usize]) -> Result<(usize, usize), String> {
        let members = |thing: &tsq_thing| Ok((thing.name, thing.tags));
        // SAFETY: the tests pass memory of the size that it says; a size that is refused is not read.
        unsafe { input(memory.as_ptr().cast::<tsq_thing>(), "thing", members) }.map_err(message)
    }

    fn read_array(memory: &[usize], len: usize, item_size: usize) -> Result<Vec<(usize, usize)>, String> {
        let members = |thing: &tsq_thing| Ok((thing.name, thing.tags));
        let first = memory.as_ptr().cast::<tsq_thing>();
        // SAFETY: the tests pass `len` items of `item_size` bytes; a size that is refused is not read.
        unsafe { input_array(first, len, item_size, "things", members) }.map_err(message)
    }

    fn message(failure: Failure) -> String {
        let Failure::Boundary { message, .. } = failure else { panic!("the failure is of this crate") };
        message
    }

    #[test]
    fn a_program_of_version_0_1_has_none_of_the_later_members() {
        // The memory ends after the members of version 0.1.
        assert_eq!(read(&[0, 7]), Ok((7, 0)));
        assert_eq!(read(&[FIRST, 7]), Ok((7, 0)));
    }

    #[test]
    fn a_struct_with_the_known_size_is_read_whole() {
        assert_eq!(read(&[NOW, 7, 8]), Ok((7, 8)));
    }

    #[test]
    fn a_struct_without_a_size_is_not_read_beyond_version_0_1() {
        assert_eq!(read(&[0, 7, 8]), Ok((7, 0)));
    }

    #[test]
    fn later_members_are_accepted_while_they_are_zero() {
        assert_eq!(read(&[NOW + 2 * size_of::<usize>(), 7, 8, 0, 0]), Ok((7, 8)));
        let newer = read(&[NOW + 2 * size_of::<usize>(), 7, 8, 0, 1]);
        let expected = format!(
            "Argument thing.size is {}, and a member after byte {NOW} is not 0: the library is older than the header and \
             does not know this member",
            NOW + 2 * size_of::<usize>()
        );
        assert_eq!(newer, Err(expected));
    }

    #[test]
    fn sizes_of_no_version_are_refused() {
        let small = format!("less than the {FIRST} bytes of the struct: set it to sizeof");
        for size in [1, size_of::<usize>(), FIRST - 1] {
            assert_eq!(read(&[size, 7, 8]), Err(format!("Argument thing.size is {size}, {small}")));
        }
        for size in [FIRST + 1, NOW - 1, MAX_SIZE + align_of::<tsq_thing>(), usize::MAX] {
            let message = format!("Argument thing.size is {size}, not the size of a struct: set it to sizeof");
            assert_eq!(read(&[size, 7, 8]), Err(message));
        }
    }

    #[test]
    fn the_items_of_an_array_are_as_far_apart_as_the_program_says() {
        assert_eq!(read_array(&[0, 1, FIRST, 2], 2, FIRST), Ok(vec![(1, 0), (2, 0)]));
        assert_eq!(read_array(&[NOW, 1, 8, FIRST, 2, 9], 2, NOW), Ok(vec![(1, 8), (2, 0)]));
        let later = NOW + size_of::<usize>();
        assert_eq!(read_array(&[later, 1, 8, 0, 0, 2, 9, 9], 2, later), Ok(vec![(1, 8), (2, 0)]));
        assert_eq!(read_array(&[], 0, NOW), Ok(vec![]));
    }

    #[test]
    fn an_array_with_a_wrong_size_is_refused() {
        let refused = |memory: &[usize], len, item_size| read_array(memory, len, item_size).expect_err("refused");
        assert!(refused(&[0, 1], 1, 0).starts_with("Argument item_size is 0, less than the "));
        assert!(refused(&[0, 1], 1, MAX_SIZE * 2).starts_with("Argument item_size is 8192, not the size of a struct"));
        assert!(refused(&[0, 1], usize::MAX, FIRST).starts_with("Argument things has an impossible length"));
        let apart = format!("Argument things[1].size is {NOW}, and the items are {FIRST} bytes apart");
        assert_eq!(refused(&[FIRST, 1, NOW, 2], 2, FIRST), apart);
        let later = NOW + size_of::<usize>();
        let unknown = refused(&[later, 1, 8, 0, later, 2, 9, 3], 2, later);
        assert!(
            unknown.starts_with(&format!("Argument things[1].size is {later}, and a member after byte {NOW} is not 0"))
        );
    }
}
