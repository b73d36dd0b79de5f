// Package worlds embeds the worlds: complete examples of a schema, its data and the policy that protects it. Package
// world reads them.
package worlds

import "embed"

// Files holds one folder per world.
//
//go:embed */*.sql */*.yaml */*.md
var Files embed.FS
