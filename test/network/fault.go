package network

import (
	"fmt"
	"time"
)

// CloseMode is how a connection ends.
type CloseMode int

// The ways in which connections end.
const (
	Never     CloseMode = iota // it ends when one of the two programs ends it
	Close                      // as when the other program has ended: what arrived can still be read
	Reset                      // the two programs get an error, and lose what they have not read
	HalfClose                  // the receiver reads an end, and can still send
	Swallow                    // nothing arrives any more, and nobody is told
)

func (w CloseMode) String() string {
	return [...]string{"never", "close", "reset", "half close", "swallow"}[w]
}

// Direction is where bytes go.
type Direction int

// The directions of a connection.
const (
	ToServer Direction = iota
	ToClient
)

func (d Direction) String() string { return [...]string{"to the server", "to the client"}[d] }

// Fault is what befalls a connection. The zero value is none.
type Fault struct {
	CloseMode CloseMode
	In        Direction
	After     int64 // how many bytes pass in this direction before the connection ends

	ResetAfter time.Duration // Swallow becomes Reset after so long; 0: never

	MaxBytesAtOnce int           // how many bytes pass at once at most, in both directions; 0: any number
	Pause          time.Duration // the pause after each piece
}

func (f Fault) String() string {
	if f.CloseMode == Never {
		return fmt.Sprintf("pieces of %d bytes, %v apart", f.MaxBytesAtOnce, f.Pause)
	}
	return fmt.Sprintf("%s after %d bytes %s", f.CloseMode, f.After, f.In)
}
