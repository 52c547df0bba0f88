//! The input that creates or changes the configuration of a community.
//!
//! Invariant: a zeroed struct changes nothing. The core reports what is missing.

use townsquare::communities::CommunityPatch;

use crate::boundary::{Failure, change, inputs, tsq_bool_change, tsq_str_change, tsq_strs_change};

/// Changes of the configuration of a community. A kept column stays as it is; in a new row it has the default of the
/// table. Zeroed, it changes nothing: `tsq_community_patch patch = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_community_patch {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Brand, as JSON; required in a new row.
    pub brand_config: tsq_str_change,
    /// Assets, as JSON; required in a new row.
    pub assets_config: tsq_str_change,
    /// The community itself, as JSON; required in a new row.
    pub community_config: tsq_str_change,
    /// The fidgets that it offers, as JSON; required in a new row.
    pub fidgets_config: tsq_str_change,
    /// Navigation, as JSON.
    pub navigation_config: tsq_str_change,
    /// Look, as JSON.
    pub ui_config: tsq_str_change,
    /// Public keys of users who may edit the navigation.
    pub admin_identity_public_keys: tsq_strs_change,
    /// Whether every caller may read it; true in a new row; cannot be cleared.
    pub is_published: tsq_bool_change,
    /// Whether it may have its own domain; false in a new row; cannot be cleared.
    pub custom_domain_authorized: tsq_bool_change,
    /// E-mail address of the administrator.
    pub admin_email: tsq_str_change,
}

inputs!(tsq_community_patch: admin_email);

impl tsq_community_patch {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All changes are initialised, all texts as for [`crate::boundary::argument::text`].
    pub(crate) unsafe fn read(&self) -> Result<CommunityPatch, Failure> {
        let mut patch = CommunityPatch::new();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            patch.brand_config = change::of_json(self.brand_config, "brand_config")?;
            patch.assets_config = change::of_json(self.assets_config, "assets_config")?;
            patch.community_config = change::of_json(self.community_config, "community_config")?;
            patch.fidgets_config = change::of_json(self.fidgets_config, "fidgets_config")?;
            patch.navigation_config = change::of_json(self.navigation_config, "navigation_config")?;
            patch.ui_config = change::of_json(self.ui_config, "ui_config")?;
            patch.admin_identity_public_keys =
                change::of_texts(self.admin_identity_public_keys, "admin_identity_public_keys")?;
            patch.is_published = change::of_bool(self.is_published, "is_published")?;
            patch.custom_domain_authorized =
                change::of_bool(self.custom_domain_authorized, "custom_domain_authorized")?;
            patch.admin_email = change::of_text(self.admin_email, "admin_email")?;
        }
        Ok(patch)
    }
}
