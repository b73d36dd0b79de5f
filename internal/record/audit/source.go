package audit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Source is a chain that can be read: a [Folder], or the reading part of a [Store].
type Source interface {
	String() string // String returns the name of the chain, for messages.
	// Segments returns the numbers of the segments, in order. A valid chain has no gaps between them.
	Segments() ([]int, error)
	// Open reads a segment from offset, where the record number after ends; 0 and 0 mean from the start.
	Open(segment int, after uint64, offset int64) (io.ReadCloser, error)
	// Size returns the size of a segment in bytes; 0 means that it is unknown.
	Size(segment int) int64
}

// Folder is a directory of segments.
type Folder string

func (f Folder) String() string { return string(f) }

// Segments lists the segment files of the directory. The error is fs.ErrNotExist if there is no directory.
func (f Folder) Segments() ([]int, error) { return listSegments(string(f)) }

// Open reads the segment's file from the offset.
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

// Size returns the size of the file.
func (f Folder) Size(segment int) int64 {
	info, err := os.Stat(filepath.Join(string(f), segmentName(segment)))
	if err != nil {
		return 0
	}
	return info.Size()
}
