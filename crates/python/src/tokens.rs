//! Token ids and texts as arguments.

use anygram::TokenId;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::invalid;
use crate::number::TokenNumber;

/// A token id.
#[derive(Clone, Copy)]
pub struct Token(pub TokenId);

impl<'a, 'py> FromPyObject<'a, 'py> for Token {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<TokenNumber>().map(|id| Self(TokenId(id.0)))
    }
}

/// Several token ids: any iterable of integers.
pub struct Tokens(pub Vec<TokenId>);

impl<'a, 'py> FromPyObject<'a, 'py> for Tokens {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let ids = object.try_iter()?.map(|token| Ok(token?.extract::<Token>()?.0));
        ids.collect::<PyResult<_>>().map(Self)
    }
}

/// Ids as Python's integers.
pub fn ids(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}

/// A text: a string, which stands for its UTF-8, or bytes.
pub struct Text(pub Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self(bytes.as_bytes().to_vec()));
        }
        let text = object.cast::<PyString>()?;
        let bytes = text.to_cow().map_err(|_| {
            invalid(object.py(), "the text has lone surrogates, which have no UTF-8: give its bytes")
        })?;
        Ok(Self(bytes.into_owned().into_bytes()))
    }
}
