package audit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Source is where a chain is read: a [Folder], or a [Store].
type Source interface {
	String() string // names it in messages
	// Segments are the parts of the chain that are there, in order. Their numbers have no gap in a chain that holds.
	Segments() ([]int, error)
	// Open reads a segment from the record after this one on, which begins at offset: 0, 0 is its beginning.
	Open(segment int, after uint64, offset int64) (io.ReadCloser, error)
	// Size is how many bytes a segment has; 0: that is not known.
	Size(segment int) int64
}

// Folder is a directory of segments.
type Folder string

func (f Folder) String() string { return string(f) }

// Segments are the files of the directory; fs.ErrNotExist without it.
func (f Folder) Segments() ([]int, error) { return listSegments(string(f)) }

// Open goes by the offset.
func (f Folder) Open(segment int, _ uint64, offset int64) (io.ReadCloser, error) {
	file, err := os.Open(filepath.Join(string(f), segmentName(segment)))
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		file.Close()
		return nil, fmt.Errorf("audit: %w", err)
	}
	return file, nil
}

// Size is that of the file.
func (f Folder) Size(segment int) int64 {
	info, err := os.Stat(filepath.Join(string(f), segmentName(segment)))
	if err != nil {
		return 0
	}
	return info.Size()
}
