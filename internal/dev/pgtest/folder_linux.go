package pgtest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

const (
	memory = "/dev/shm"
	tmpfs  = 0x01021994 // TMPFS_MAGIC, <linux/magic.h>
)

// inMemory returns a file system in memory with so many bytes of room, "" if there is none.
func inMemory(room uint64) string {
	var fs syscall.Statfs_t
	// read, write, enter
	if syscall.Statfs(memory, &fs) != nil || int64(fs.Type) != tmpfs || syscall.Access(memory, 7) != nil {
		return ""
	}
	if min(fs.Bavail*uint64(fs.Bsize), availableBytes()) < room {
		return ""
	}
	return memory
}

// availableBytes is the memory that is available without swapping (proc(5)).
func availableBytes() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	return 0
}
