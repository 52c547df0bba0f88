//! What is given to save a community's configuration.
//!
//! Invariant: a zeroed struct is one that gives nothing; the core judges what is missing.

use townsquare::CommunityPatch;

use crate::{
    change::{self, tsq_bool_change, tsq_str_change, tsq_strs_change},
    error::Failure,
};

/// What is saved of a community's configuration: what is kept stays as it is or, in a new row, takes the table's
/// default. Zeroed, it keeps everything: `tsq_community_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_community_patch {
    /// Brand: any JSON, as text; required in a new row.
    pub brand_config: tsq_str_change,
    /// Assets: any JSON, as text; required in a new row.
    pub assets_config: tsq_str_change,
    /// The community itself: any JSON, as text; required in a new row.
    pub community_config: tsq_str_change,
    /// Fidgets it offers: any JSON, as text; required in a new row.
    pub fidgets_config: tsq_str_change,
    /// Navigation: any JSON, as text.
    pub navigation_config: tsq_str_change,
    /// Look: any JSON, as text.
    pub ui_config: tsq_str_change,
    /// Public keys whose holders may edit the navigation.
    pub admin_identity_public_keys: tsq_strs_change,
    /// Whether everyone may see it; true in a new row.
    pub is_published: tsq_bool_change,
    /// Whether it may have a domain of its own; false in a new row.
    pub custom_domain_authorized: tsq_bool_change,
    /// Whom to write to.
    pub admin_email: tsq_str_change,
}

impl tsq_community_patch {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All changes are initialised, all texts as for [`crate::text::required`].
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
            patch.is_published = change::of_truth(self.is_published, "is_published")?;
            patch.custom_domain_authorized =
                change::of_truth(self.custom_domain_authorized, "custom_domain_authorized")?;
            patch.admin_email = change::of_text(self.admin_email, "admin_email")?;
        }
        Ok(patch)
    }
}
