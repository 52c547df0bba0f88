//! Changes of a text that only the library can make: a signed URL, a claim. libFuzzer changes the list of the changes.

/// Reads changes from the input and applies them to `text`. A change is four bytes: its kind, its place in two bytes, and a byte.
/// What is left after the number of changes that the first byte says is inserted at the last place.
pub(super) fn edited(text: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let Some((&many, mut rest)) = data.split_first() else { return bytes };
    let mut place = bytes.len();
    for _ in 0..many % 5 {
        let Some((change, after)) = rest.split_first_chunk::<4>() else { break };
        rest = after;
        let [kind, high, low, byte] = *change;
        place = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        match kind % 6 {
            0 => bytes.insert(place, byte),
            1 if place < bytes.len() => bytes[place] = byte,
            2 if place < bytes.len() => drop(bytes.remove(place)),
            3 if place < bytes.len() => bytes[place] ^= 1 << (byte % 8),
            4 => bytes.truncate(place),
            // Repeats a part of the text at another place.
            5 => {
                let end = (place + usize::from(byte)).min(bytes.len());
                let part = bytes[place..end].to_vec();
                bytes.extend(part);
            }
            _ => {}
        }
    }
    bytes.splice(place.min(bytes.len())..place.min(bytes.len()), rest.iter().copied());
    bytes
}
