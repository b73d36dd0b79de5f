package network

import (
	"fmt"
	"time"
)

// CloseMode says how the relay ends a connection.
type CloseMode int

// Values of CloseMode.
const (
	Never     CloseMode = iota // the relay does not end it: one of the two programs closes it
	Close                      // both programs read the bytes that have arrived, and then the end
	Reset                      // both programs get an error, and lose what they have not read
	HalfClose                  // the receiver reads the end, and can still send
	Swallow                    // no more bytes arrive, and neither program learns of it
)

func (w CloseMode) String() string {
	return [...]string{"never", "close", "reset", "half close", "swallow"}[w]
}

// Direction is a direction in which bytes pass a relay.
type Direction int

// The directions of a connection.
const (
	ToServer Direction = iota
	ToClient
)

func (d Direction) String() string { return [...]string{"to the server", "to the client"}[d] }

// Fault says when and how a connection ends, or how it is slowed. The zero value means no fault.
type Fault struct {
	CloseMode CloseMode
	In        Direction
	After     int64 // the connection ends after this number of bytes in the direction In

	ResetAfter time.Duration // after this time, Swallow becomes Reset; 0: never

	MaxBytesAtOnce int           // largest number of bytes that pass at once, in both directions; 0: any
	Pause          time.Duration // pause after each write
}

func (f Fault) String() string {
	if f.CloseMode == Never {
		return fmt.Sprintf("pieces of %d bytes, %v apart", f.MaxBytesAtOnce, f.Pause)
	}
	return fmt.Sprintf("%s after %d bytes %s", f.CloseMode, f.After, f.In)
}
