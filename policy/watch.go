package policy

import (
	"fmt"
	"os"
	"strings"
)

// Watch knows what the files and folders of a policy looked like just before they were read. It is for one goroutine.
type Watch struct {
	seen map[string]string
	last string // what Changed found
}

// note notes a file or folder that is about to be read.
func (w *Watch) note(path string) {
	if _, ok := w.seen[path]; !ok {
		w.seen[path] = fileState(path)
	}
}

// fileState is what tells that a file has changed, or that a folder has other entries.
func fileState(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	if !info.IsDir() {
		return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano(), " ", inode(info))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "none"
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, "\x00")
}

// Changed tells whether something has changed since it was read and has not changed since the last call: whoever edits
// several files, or writes a long one, is left the time between two calls to finish.
func (w *Watch) Changed() bool {
	var b strings.Builder
	same := true
	for _, path := range keys(w.seen) {
		now := fileState(path)
		same = same && now == w.seen[path]
		fmt.Fprintf(&b, "%q %q\n", path, now)
	}
	settled := b.String() == w.last
	w.last = b.String()
	return !same && settled
}
