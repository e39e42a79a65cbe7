//! Answers to calls of gRPC.

use crate::error::Error;
use prost::Message;
use std::{
    convert::Infallible,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    codegen::{BoxFuture, Service, http, tokio_stream::Stream},
    server::{Grpc, NamedService, StreamingService, UnaryService},
};
use tonic_prost::ProstCodec;

/// Messages may be as large as tensors are.
pub(crate) const LARGEST: usize = i32::MAX as usize;

/// The bytes that a side may send before the other has read them: of a call, and of a connection.
pub(crate) const WINDOWS: (u32, u32) = (64 << 20, 128 << 20);

/// The largest frame of HTTP/2: each costs a turn of both sides.
pub(crate) const FRAME: u32 = 1 << 20;

/// The reply to a call.
pub(crate) type RpcReply = BoxFuture<http::Response<Body>, Infallible>;

/// A service: the answer to each of its methods.
pub(crate) trait Routes: Send + Sync + 'static {
    /// The full name, such as `tensorflow.WorkerService`.
    const NAME: &'static str;

    /// The state that the methods share.
    type State: Send + Sync + 'static;

    /// Answers a call of a method.
    fn route(state: Arc<Self::State>, method: &str, request: http::Request<Body>) -> RpcReply;
}

/// A service as servers take it.
pub(crate) struct Routed<R: Routes>(Arc<R::State>);

impl<R: Routes> Routed<R> {
    pub(crate) fn new(state: &Arc<R::State>) -> Routed<R> {
        Routed(state.clone())
    }
}

impl<R: Routes> Clone for Routed<R> {
    fn clone(&self) -> Routed<R> {
        Routed(self.0.clone())
    }
}

impl<R: Routes> NamedService for Routed<R> {
    const NAME: &'static str = R::NAME;
}

impl<R: Routes> Service<http::Request<Body>> for Routed<R> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = RpcReply;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> RpcReply {
        let method = method(&request);
        R::route(self.0.clone(), &method, request)
    }
}

/// Calls with messages of these types.
fn grpc<R, Q>() -> Grpc<ProstCodec<R, Q>>
where
    R: Message + 'static,
    Q: Message + Default + 'static,
{
    Grpc::new(ProstCodec::<R, Q>::default())
        .max_decoding_message_size(LARGEST)
        .max_encoding_message_size(LARGEST)
}

/// The threads of a process's network.
///
/// # Errors
///
/// [`Error::Start`] when the system refuses them.
pub(crate) fn network(threads: usize) -> crate::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let what = "the threads of the network";
    runtime.map_err(|error| Error::Start { what, reason: error.to_string() })
}

/// The name of the method that is called.
fn method(request: &http::Request<Body>) -> String {
    request.uri().path().rsplit('/').next().unwrap_or_default().to_string()
}

pub(crate) fn refused(service: &str, method: &str) -> RpcReply {
    let status = Status::unimplemented(format!("{method} of {service} is not supported"));
    Box::pin(async move { Ok(status.into_http()) })
}

/// Answers a call with what `answer` makes of the request.
pub(crate) fn unary<Q, R, F, A>(request: http::Request<Body>, answer: F) -> RpcReply
where
    Q: Message + Default + 'static,
    R: Message + Default + 'static,
    F: FnOnce(Q) -> A + Send + 'static,
    A: Future<Output = Result<R, Status>> + Send + 'static,
{
    Box::pin(async move {
        Ok(grpc::<R, Q>()
            .unary(Once { answer: Some(answer), _request: PhantomData }, request)
            .await)
    })
}

/// A handler of one call.
struct Once<Q, F> {
    answer: Option<F>,
    _request: PhantomData<fn(Q)>,
}

impl<Q, R, F, A> UnaryService<Q> for Once<Q, F>
where
    R: Send + 'static,
    F: FnOnce(Q) -> A,
    A: Future<Output = Result<R, Status>> + Send + 'static,
{
    type Response = R;
    type Future = BoxFuture<Response<R>, Status>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let answer = self.answer.take().map(|answer| answer(request.into_inner()));
        Box::pin(async move {
            let answer = answer.ok_or_else(|| Status::internal("a call that was answered"))?;
            Ok(Response::new(answer.await?))
        })
    }
}

/// Answers each message of a stream with what `answer` makes of it, in their order; the first error ends
/// the stream.
pub(crate) fn streaming<Q, R, F, A>(request: http::Request<Body>, answer: F) -> RpcReply
where
    Q: Message + Default + 'static,
    R: Message + Default + 'static,
    F: Fn(Q) -> A + Send + 'static,
    A: Future<Output = Result<R, Status>> + Send + 'static,
{
    Box::pin(async move {
        let service = Each { answer: Some(answer), _request: PhantomData };
        Ok(grpc::<R, Q>().streaming(service, request).await)
    })
}

/// A handler of one stream.
struct Each<Q, F> {
    answer: Option<F>,
    _request: PhantomData<fn(Q)>,
}

/// The answers to the messages of a stream.
pub(crate) struct Answers<R>(mpsc::Receiver<Result<R, Status>>);

impl<R> Stream for Answers<R> {
    type Item = Result<R, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

impl<Q, R, F, A> StreamingService<Q> for Each<Q, F>
where
    Q: Message + 'static,
    R: Send + 'static,
    F: Fn(Q) -> A + Send + 'static,
    A: Future<Output = Result<R, Status>> + Send + 'static,
{
    type Response = R;
    type ResponseStream = Answers<R>;
    type Future = BoxFuture<Response<Answers<R>>, Status>;

    fn call(&mut self, request: Request<Streaming<Q>>) -> Self::Future {
        let answer = self.answer.take();
        let mut messages = request.into_inner();
        let (send, answers) = mpsc::channel(16);
        tokio::spawn(async move {
            let Some(answer) = answer else { return };
            while let Ok(Some(message)) = messages.message().await {
                let answered = answer(message).await;
                let is_last = answered.is_err();
                if send.send(answered).await.is_err() || is_last {
                    return;
                }
            }
        });
        Box::pin(async move { Ok(Response::new(Answers(answers))) })
    }
}
