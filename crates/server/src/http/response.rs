//! The responses to requests that are served.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::body::{EventBody, ResponseBody};

pub fn document(kind: &'static str, bytes: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::document(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The last response of its connection: a client that has not identified itself must not hold one.
pub fn last(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

pub fn json(status: StatusCode, bytes: Bytes) -> Response<ResponseBody> {
    let mut response = document("application/json", bytes);
    *response.status_mut() = status;
    response
}

pub fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::document(Bytes::new()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub fn events(events: EventBody) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
