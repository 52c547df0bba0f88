//! Composing a client: the options go to the services, the database is opened, and a handle gets its services.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use super::{
    CallerServices, Client, ClientCore,
    move_to::{MoveSource, Purpose},
    request_context::resolve_caller,
};
use crate::{
    auth::{AccountOptions, Accounts, Auth},
    check::Places,
    clock::Clock,
    communities::Communities,
    config::{DatabaseLocation, FilesLocation, OptionValues, Resolved},
    database::{
        OpenOptions, PostgresOptions, PreparedDatabase, ReplicaOptions, StoredFiles, change_log::RetentionLimits,
    },
    discovery::{Discovery, DiscoveryOptions, EndpointOptions},
    error::{Error, ErrorKind, Result},
    model::{MigrationPlan, MoveTarget},
    realtime::{Realtime, RealtimeCore},
    request_context::{RequestContext, SharedContext},
    spaces::{Fidgets, Spaces},
    storage::{FileQuota, PreparedStorage, Storage, StorageCore, StorageOptions, require_outside_stores},
    threads::{BoxedFuture, ProcessOwned, Runtime, RuntimeHandle},
    upstream::Upstream,
    validate::Limits,
};

impl Client {
    /// Opens the database and the services of a client. Everything that may refuse the database comes before the first
    /// change of it.
    ///
    /// # Errors
    /// `Config` if a move into the database is unfinished; for the target of a move, if it is not empty.
    pub(super) fn compose(
        resolved: Resolved,
        runtime: Arc<Runtime>,
        purpose: Purpose,
    ) -> BoxedFuture<'static, Result<Client>> {
        Box::pin(async move {
            let places = Arc::new(Places::of(&resolved));
            let handle = runtime.handle().clone();
            let is_move_target = matches!(purpose, Purpose::MoveTarget(_));
            let Prepared { database, storage, upstream, options, allowed_origins, session_file, .. } =
                Prepared::new(resolved, &purpose, &handle).await?;
            let allowed_origins: Arc<[String]> = allowed_origins.into();
            let expose_owner_email = options.expose_owner_email;
            let limits = Limits {
                max_text_size: options.max_text_size,
                max_name_size: options.max_name_size,
                max_json_size: options.max_json_size,
                max_bulk_rows: options.max_bulk_rows,
                max_owner_spaces: options.max_owner_spaces,
                max_space_fidgets: options.max_space_fidgets,
            };
            let accounts = AccountOptions {
                sign_up_limit: options.sign_up_limit,
                identity_audience: options.identity_audience.clone(),
                limits,
            };
            let retention = RetentionLimits {
                age: options.change_retention,
                rows: options.change_retention_rows,
                bytes: options.change_retention_bytes,
            };
            let discovery = DiscoveryOptions {
                interval: options.refresh_interval,
                lease: options.catalog_refresh_timeout,
                max_staleness: options.max_staleness,
                max_lists: options.catalog_max_lists as usize,
                endpoint: EndpointOptions {
                    can_refresh: options.endpoint_refresh,
                    min_refresh_age: options.endpoint_refresh_age,
                    can_fetch_lists: options.endpoint_lists,
                    allowed_origins: Arc::clone(&allowed_origins),
                },
            };
            let event_heartbeat = options.event_heartbeat;
            // Every check that may refuse the database is done: this is the first change of it.
            let database = database.open().await?;
            // Processes compare the times of rows, sessions and tokens.
            let clock = database.clock().clone();
            let service = database.service();
            let callbacks = runtime.callbacks().clone();
            let storage =
                StorageCore::open(storage, service.clone(), clock.clone(), handle.clone(), is_move_target).await?;
            let realtime =
                RealtimeCore::new(database.clone(), clock.clone(), retention, handle.clone(), callbacks.clone());
            let accounts =
                Arc::new(Accounts::new(service.clone(), clock.clone(), accounts, handle.clone(), callbacks.clone()));
            let resolve_caller = resolve_caller(Arc::clone(&accounts), database.clone());
            let requests =
                SharedContext::new(resolve_caller, allowed_origins, event_heartbeat, runtime.tokio().clone());
            let requests = Arc::new(requests);
            let discovery = Discovery::new(upstream, discovery, service, clock.clone(), handle, callbacks)?;
            let auth = Auth::anonymous(Arc::clone(&accounts), session_file);
            let core = ClientCore {
                discovery,
                accounts,
                storage,
                realtime,
                runtime,
                database,
                clock,
                limits,
                expose_owner_email,
                requests,
                places,
                is_closed: AtomicBool::new(false),
                process: ProcessOwned::new(()),
            };
            let client = Client::with_auth(Arc::new(core), auth, false);
            if !is_move_target {
                client.auth().restore_session().await?;
            }
            Ok(client)
        })
    }

    /// Makes the checks of [`compose`](Client::compose) for the target of a move. Writes nothing.
    ///
    /// # Errors
    /// `Config` if the move would be refused.
    pub(super) async fn check_target(
        resolved: Resolved,
        runtime: Arc<Runtime>,
        source: MoveSource,
    ) -> Result<MoveTarget> {
        let purpose = Purpose::MoveTarget(source);
        let stored = Prepared::new(resolved, &purpose, runtime.handle()).await?.stored_files;
        Ok(match stored.unfinished_move {
            Some(_) => MoveTarget::Unfinished,
            None if stored.usage.incarnation.is_empty() => MoveTarget::New,
            None => MoveTarget::Empty,
        })
    }

    /// Reads which migrations the database lacks. Opens no store.
    pub(super) async fn read_plan(resolved: Resolved, runtime: Arc<Runtime>) -> Result<MigrationPlan> {
        // With `migrate`, a database of an older version is not refused.
        let options = OpenOptions { migrate: true, is_plan: true, ..open_options(&resolved.options, resolved.clock) };
        let (_, stored) = PreparedDatabase::new(resolved.database, options, runtime.handle().clone()).await?;
        stored.plan.ok_or_else(|| Error::new(ErrorKind::Internal, "The database was not asked for its migrations"))
    }

    /// Returns a handle of the client. Its services act for the caller of `auth`.
    pub(super) fn with_auth(core: Arc<ClientCore>, auth: Auth, is_derived: bool) -> Client {
        let scope = core.database.scope(auth.principal().clone());
        let (clock, limits) = (|| core.clock.clone(), core.limits);
        let requests = RequestContext { shared: Arc::clone(&core.requests), client: auth.client() };
        Client(Arc::new(CallerServices {
            communities: Communities::new(scope.clone(), clock(), limits),
            spaces: Spaces::new(scope.clone(), clock(), limits, core.expose_owner_email),
            fidgets: Fidgets::new(scope.clone(), clock(), limits),
            realtime: Realtime::new(Arc::clone(&core.realtime), auth.principal().clone(), requests.clone()),
            storage: Storage::new(scope, Arc::clone(&core.storage), requests),
            discovery: core.discovery.for_handle(auth.principal().clone()),
            auth,
            is_derived,
            core,
        }))
    }
}

/// The checked parts of a client that is not open yet. None of them has written anything.
struct Prepared {
    database: PreparedDatabase,
    storage: PreparedStorage,
    stored_files: StoredFiles,
    upstream: Upstream,
    options: OptionValues,
    allowed_origins: Vec<String>,
    session_file: Option<PathBuf>,
}

impl Prepared {
    /// Checks the database, the file store and the catalog. Writes nothing.
    ///
    /// # Errors
    /// `Config` if one of them may not be used for the purpose; the errors of the database and the store.
    async fn new(resolved: Resolved, purpose: &Purpose, handle: &RuntimeHandle) -> Result<Prepared> {
        let Resolved { database, catalog, files, inline_file_limit, allowed_origins, session_file, options, clock } =
            resolved;
        let upstream = Upstream::new(&catalog, &options, clock.clone())?;
        if let DatabaseLocation::Sqlite { file, .. } = &database
            && !file.exists()
        {
            require_outside_stores(file)?;
        }
        let of_files = StorageOptions {
            inline_file_limit,
            max_file_size: options.max_file_size,
            max_verified_size: options.max_verified_size,
            quota: FileQuota { max_bytes: options.max_owner_bytes, max_files: options.max_owner_files },
            claim_store: options.claim_store,
            is_beside_database: is_beside(&files, &database),
            url_signing_key: options.url_signing_key.clone(),
        };
        let storage = PreparedStorage::new(files, &options.buckets, of_files, handle)?;
        let is_move_target = matches!(purpose, Purpose::MoveTarget(_));
        let of_database = OpenOptions { is_move_target, ..open_options(&options, clock) };
        let (database, stored_files) = PreparedDatabase::new(database, of_database, handle.clone()).await?;
        storage.check(&stored_files).await?;
        purpose.check(&storage, &stored_files).await?;
        Ok(Prepared { database, storage, stored_files, upstream, options, allowed_origins, session_file })
    }
}

/// Whether the folder of the files lies in the folder with the file of the database.
fn is_beside(files: &FilesLocation, database: &DatabaseLocation) -> bool {
    match (files, database) {
        (FilesLocation::Folder(folder), DatabaseLocation::Sqlite { file, .. }) => {
            file.parent().is_some_and(|parent| folder.starts_with(parent))
        }
        _ => false,
    }
}

/// Returns the options of the database.
fn open_options(options: &OptionValues, clock: Clock) -> OpenOptions {
    let postgres = PostgresOptions {
        pooler: options.database_pooler,
        max_connections: options.max_connections,
        operation_timeout: options.operation_timeout,
        connect_timeout: options.connect_timeout,
        idle_timeout: options.idle_timeout,
        max_lifetime: options.max_lifetime,
        adopt: options.adopt,
    };
    let replica = options.database_replica_url.clone().map(|url| ReplicaOptions {
        url,
        wait: options.database_replica_wait,
        max_lag: options.database_replica_max_lag,
    });
    let OptionValues { durability, busy_timeout, migrate, .. } = *options;
    OpenOptions { durability, busy_timeout, postgres, replica, migrate, is_move_target: false, is_plan: false, clock }
}
