// Package api is the HTTP API: /v1/… as JSON, and /openapi.json, which describes it.
//
// Guarantee: only a caller with a valid token gets an answer under /v1/, and only after the audit record of the call
// has been written as durably as the mode of the audit demands. Every error is problem JSON (RFC 9457) with a stable
// code. Package operations decides who may do what; this package only limits how much a caller may send. All answers
// forbid caching.
package api
