//! Sessions whose queries a scheduler distributes.

use super::codec::codecs;
use crate::error::Error;
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::error::BallistaError;
use datafusion::{
    common::{DataFusionError, Result},
    execution::{SessionStateBuilder, runtime_env::RuntimeEnv},
    prelude::{SessionConfig, SessionContext},
};
use std::sync::Arc;

/// A session of the scheduler at `df://host:port`.
pub(crate) async fn remote(
    scheduler: &str,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
) -> Result<SessionContext> {
    let (logical, physical) = codecs();
    let config = config
        .with_ballista_logical_extension_codec(logical)
        .with_ballista_physical_extension_codec(physical);
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(runtime)
        .build();
    SessionContext::remote_with_state(scheduler, state).await
}

/// Whether a query failed as a process or a connection was lost. Results stay with the executors that
/// have computed them until they are fetched.
pub(crate) fn is_transient(error: &Error) -> bool {
    let Error::Engine(error) = error else { return false };
    let DataFusionError::External(error) = error.find_root() else { return false };
    matches!(
        error.downcast_ref(),
        Some(
            BallistaError::FetchFailed(..)
                | BallistaError::GrpcError(_)
                | BallistaError::GrpcConnectionError(_)
                | BallistaError::TonicError(_)
        )
    )
}
