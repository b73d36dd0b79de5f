package network

import (
	"fmt"
	"time"
)

// CloseMode says how a connection ends.
type CloseMode int

// The ways in which connections end.
const (
	Never     CloseMode = iota // the connection ends when one of the two programs closes it
	Close                      // as if the other program had ended: bytes that have arrived can still be read
	Reset                      // the two programs get an error, and lose what they have not read
	HalfClose                  // the receiver reads an end, and can still send
	Swallow                    // no more bytes arrive, and neither program is notified
)

func (w CloseMode) String() string {
	return [...]string{"never", "close", "reset", "half close", "swallow"}[w]
}

// Direction is the direction in which bytes go.
type Direction int

// The directions of a connection.
const (
	ToServer Direction = iota
	ToClient
)

func (d Direction) String() string { return [...]string{"to the server", "to the client"}[d] }

// Fault says when and how a connection ends, or how it is slowed. The zero value is no fault.
type Fault struct {
	CloseMode CloseMode
	In        Direction
	After     int64 // how many bytes pass in the direction In before the connection ends

	ResetAfter time.Duration // after this time, Swallow becomes Reset; 0: never

	MaxBytesAtOnce int           // how many bytes pass at once at most, in both directions; 0: any number
	Pause          time.Duration // the pause after each write
}

func (f Fault) String() string {
	if f.CloseMode == Never {
		return fmt.Sprintf("pieces of %d bytes, %v apart", f.MaxBytesAtOnce, f.Pause)
	}
	return fmt.Sprintf("%s after %d bytes %s", f.CloseMode, f.After, f.In)
}
