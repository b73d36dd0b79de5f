// Package mcp is the server of the Model Context Protocol: consents, interactions, and the rows that agents may see, as
// tools for a model.
//
// Guarantee: a request without a valid token is answered with 401 and always the same bytes. A caller is offered, and
// may call, the tools of its role only. Package consent decides who may change which consent; statements of tools are
// enforced like those of any client. A session belongs to one token and ends with it. Arguments are limited in size and
// strict: unknown members are refused. A call that runs no statement is recorded before its answer is sent.
//
// Not guaranteed: that a model acts as the descriptions say.
//
// Tools on one subject are in a file of their own: a func() []Tool that is listed in toolSets (tools.go) and makes its
// tools with [NewTool]. The Go types of input and output give the schemas; `jsonschema:"…"` describes a member.
package mcp
