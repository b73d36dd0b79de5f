package pgtest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

const (
	memoryFolder = "/dev/shm"
	tmpfsMagic   = 0x01021994 // TMPFS_MAGIC, <linux/magic.h>
)

// memoryFolderFor returns the folder of a memory file system with this number of bytes free; "": there is none.
func memoryFolderFor(bytes uint64) string {
	var fs syscall.Statfs_t
	// The mode 7 stands for the rights to read, write and enter.
	if syscall.Statfs(memoryFolder, &fs) != nil || int64(fs.Type) != tmpfsMagic || syscall.Access(memoryFolder, 7) != nil {
		return ""
	}
	if min(fs.Bavail*uint64(fs.Bsize), availableBytes()) < bytes {
		return ""
	}
	return memoryFolder
}

// availableBytes returns how much memory is available without swapping (proc(5)).
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
