//go:build unix && !linux

package pgtest

// memoryFolderFor returns "": only on Linux is there a known folder in memory.
func memoryFolderFor(uint64) string { return "" }
