// Package api is the HTTP face: /v1/… as JSON, and /openapi.json, which describes it.
//
// Guarantee: what is under /v1/ is answered to callers with a valid token, and after a record of the call is as durable
// as the audit's mode asks. Every error is problem JSON (RFC 9457) with a stable code. Who may do what is decided in
// package operations; nothing is decided here but how much a caller may send. No answer may be stored by anybody on the way.
package api
