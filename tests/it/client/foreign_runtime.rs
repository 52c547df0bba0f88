//! The futures of a client run in a runtime that is not tokio (DESIGN 2): in smol, on two of its threads.

use std::{pin::pin, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, future::try_join_all, stream};
use smol::{Executor, Timer};
use townsquare::{
    Client, Config, Result, discovery::Timeframe, realtime::ChangeRequest, spaces::NewSpace, storage::UploadOptions,
};
use townsquare_tests::{on_both_engines, temp_dir};

/// Runs a future on smol's executor with a second thread.
fn in_smol<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let executor = Executor::new();
    let (stop, stopped) = smol::channel::bounded::<()>(1);
    std::thread::scope(|scope| {
        scope.spawn(|| smol::block_on(executor.run(stopped.recv())));
        let result = smol::block_on(executor.run(future));
        drop(stop);
        result
    })
}

/// Fails after a time in which everything happens.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let late = async {
        Timer::after(Duration::from_secs(60)).await;
        panic!("nothing happened for a minute")
    };
    smol::future::or(future, late).await
}

on_both_engines! {
    fn writes_changes_and_files_run_in_smol(db: &TestDatabase) {
        let client = db.async_service().clone();
        assert!(tokio::runtime::Handle::try_current().is_err(), "the test is in no runtime of tokio");
        in_smol(soon(async {
            let mut changes = client.realtime().changes(ChangeRequest::table("spaces")).await.expect("a stream");
            // A timer of smol drops the future; the change is not lost.
            let wait = async { changes.next().await.map(drop) };
            let timer = async { Timer::after(Duration::from_millis(20)).await; None };
            assert!(smol::future::or(wait, timer).await.is_none());
            let creates = (0..8).map(|number| {
                let client = client.clone();
                // In a task of its own, on the global executor of smol.
                smol::spawn(async move { client.spaces().create_space(NewSpace::named(format!("Pier {number}"))).await })
            });
            let spaces = try_join_all(creates).await.expect("created");
            let heard: Vec<_> = (&mut changes).take(8).try_collect().await.expect("changes");
            assert_eq!((spaces.len(), heard.len()), (8, 8));
            let chunks: Vec<Vec<u8>> = (0..40_u8).map(|byte| vec![byte; 50_000]).collect();
            let mut writer = client.storage().writer("assets", "videos/a", UploadOptions::new()).await.expect("a writer");
            for chunk in &chunks {
                writer.write(chunk.clone()).await.expect("written");
            }
            writer.finish().await.expect("stored");
            let reader = client.storage().reader("assets", "videos/a").await.expect("a reader");
            let read = reader.try_fold(Vec::new(), async |mut all, chunk| { all.extend_from_slice(&chunk); Ok(all) });
            assert!(read.await.expect("read") == chunks.concat());
            let ids: Vec<_> = spaces.iter().map(|space| space.id).collect();
            let targets = stream::iter(ids).map(|id| client.spaces().delete_space(id));
            targets.buffer_unordered(4).try_collect::<Vec<_>>().await.expect("deleted");
        }));
    }
}

#[test]
fn a_client_opens_serves_the_catalog_and_closes_in_smol() {
    let folder = temp_dir();
    let config = Config::new().data_dir(folder.path().join("town")).catalog_url("sample:");
    let found: Result<usize> = in_smol(soon(async {
        let client = Client::open(config).await?;
        let apps = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20).await?.len();
        client.auth().sign_up("ann@town.example", "correct horse").await?;
        client.auth().sign_in("ann@town.example", "correct horse").await?;
        let mut spaces = pin!(client.spaces().iter_public_spaces(10));
        assert!(spaces.next().await.is_none());
        client.close().await;
        Ok(apps)
    }));
    assert_eq!(found.expect("it works"), 20);
}
