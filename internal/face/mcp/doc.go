// Package mcp is the face for clients of the Model Context Protocol: consents, interactions, and governed rows, as
// tools that a model can act on.
//
// Guarantee: a request without a valid token is answered with 401 and the same bytes. A caller is told of, and may
// call, the tools of its role and no others; who may change which consent is decided by package consent, and what an
// agent reads and writes by the enforcement, whose client a tool is. A session belongs to one token, and ends with it.
// What a tool is asked with is bounded and strict: what it does not know is refused. A call that runs no statement is
// recorded before its answer leaves.
//
// Not guaranteed: that a model does as the descriptions say.
//
// A helper of one subject adds tools in a file of its own: a func of type func(*Server) []Tool, listed in own
// (tools.go), whose tools are made by [NewTool]. The input's and output's Go types give the schemas; `jsonschema:"…"`
// describes a member.
package mcp
