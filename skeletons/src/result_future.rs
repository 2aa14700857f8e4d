//! A boxed future of a task's result.

use futures_util::future::BoxFuture;
use ultramarine_runtime::error::TaskError;

pub(crate) type ResultFuture<R> = BoxFuture<'static, Result<R, TaskError>>;
