// Package mcp is a server of the Model Context Protocol. Its tools give a model access to consents, to interactions,
// and to the rows that agents may see.
//
// Guarantee: a request without a valid token is answered with status 401 and always the same body. A caller is offered
// the tools of its role, and may call no others. Package consent decides who may change which consent; the proxy
// enforces the statements of tools like those of any client. A session belongs to one token and ends with it. Arguments
// are limited in size, and unknown members are refused. A call that runs no statement is recorded before its answer is
// sent.
//
// Not guaranteed: that a model acts as the descriptions of the tools say.
//
// Tools on the same subject are in one file, which has a func() []Tool that makes them with [NewTool] and is listed in
// toolSets (tools.go). Schemas come from the Go types of input and output; the tag `jsonschema:"…"` describes a member.
package mcp
