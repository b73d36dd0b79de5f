// Package api is the HTTP API: /v1/… as JSON, and /openapi.json, which describes it.
//
// Guarantee: a request under /v1/ is answered only to a caller with a valid token, and only after the record of the
// call is as durable as the audit's mode asks. Every error is problem JSON (RFC 9457) with a stable code. Package
// operations decides who may do what; this package only limits how much a caller may send. Answers forbid caching.
package api
