//! Types of Rust for loaded objects.
//!
//! A loaded object has functions, variables and children, but no type of its own. A type that is
//! saved under a name (`#[trackable(type = "..")]`) may be made again of what was loaded, and so
//! have methods in plain Rust that call functions of the model.
//!
//! ```
//! use ferroflow_saved_model::{Object, Result, Revive, RestoredFunction};
//!
//! struct Phased {
//!     apply: RestoredFunction,
//! }
//!
//! impl Revive for Phased {
//!     const IDENTIFIER: &'static str = "example.Phased";
//!
//!     fn revive(object: &Object) -> Result<Phased> {
//!         Ok(Phased { apply: object.get("apply")?.function()? })
//!     }
//! }
//! ```

use crate::{
    error::{Error, Result},
    model::Object,
    proto::saved_object::Kind,
};

/// A type that is made of loaded objects which were saved under its name.
pub trait Revive: Sized {
    /// The name, equal where objects are saved and where they are loaded.
    const IDENTIFIER: &'static str;

    /// The value, made of what was loaded.
    ///
    /// # Errors
    ///
    /// When the object lacks what the type needs.
    fn revive(object: &Object) -> Result<Self>;
}

impl Object {
    /// The name of the object's type, if it has one that loaders may know.
    pub fn identifier(&self) -> Option<&str> {
        match self.kind() {
            Some(Kind::UserObject(object)) => Some(&object.identifier),
            _ => None,
        }
    }

    /// The object as a type of Rust.
    ///
    /// # Errors
    ///
    /// [`Error::OtherType`] when it was saved as another, and those of [`Revive::revive`].
    pub fn revive<T: Revive>(&self) -> Result<T> {
        match self.identifier() {
            Some(found) if found == T::IDENTIFIER => T::revive(self),
            found => Err(Error::OtherType {
                expected: T::IDENTIFIER,
                found: found.unwrap_or("an object without a type").into(),
            }),
        }
    }
}
