//! Status codes of gRPC for those of the runtime, and back.

use ferroflow_ir::Code;
use tonic::Status;

/// The status of a call that failed.
pub(crate) fn status(code: Code, message: String) -> Status {
    Status::new(tonic::Code::from_i32(code.number()), message)
}

/// The status code of the runtime for one of gRPC.
pub(crate) fn code(code: tonic::Code) -> Code {
    match code {
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::PermissionDenied | tonic::Code::Unauthenticated => Code::PermissionDenied,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Aborted => Code::Aborted,
        tonic::Code::OutOfRange => Code::OutOfRange,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::DataLoss => Code::DataLoss,
        // A connection that breaks has no code of its own, and nothing here cancels calls.
        tonic::Code::Unavailable | tonic::Code::Unknown | tonic::Code::Cancelled => {
            Code::Unavailable
        }
        tonic::Code::Ok | tonic::Code::Internal => Code::Internal,
    }
}
