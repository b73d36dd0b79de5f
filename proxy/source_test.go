package proxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// sockets returns the two ends of a connection, for each kind of connection that the proxy relays.
func sockets(t *testing.T) map[string][2]net.Conn {
	t.Helper()
	pairs := map[string][2]net.Conn{}
	for _, network := range []string{"tcp", "unix"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = t.TempDir() + "/s"
		}
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		clientEnd, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		serverEnd, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { clientEnd.Close(); serverEnd.Close(); l.Close() })
		pairs[network] = [2]net.Conn{clientEnd, serverEnd}
	}
	a, b := net.Pipe() // it has only Read and Write, as TLS has
	t.Cleanup(func() { a.Close(); b.Close() })
	pairs["pipe"] = [2]net.Conn{a, b}
	return pairs
}

// Every byte arrives, in order, even if the reader is slower than the writer: in one large write, and in many small
// ones.
func TestSinkWritesAll(t *testing.T) {
	largeBlock := make([]byte, 3<<20)
	_, _ = rand.Read(largeBlock)
	for name, pair := range sockets(t) {
		t.Run(name, func(t *testing.T) {
			got := make(chan []byte)
			go func() {
				time.Sleep(20 * time.Millisecond) // the socket is full meanwhile
				b, _ := io.ReadAll(io.LimitReader(pair[1], 2*int64(len(largeBlock))))
				got <- b
			}()
			target := newSink(pair[0])
			if err := target.write(largeBlock); err != nil {
				t.Fatal(err)
			}
			for remaining := largeBlock; len(remaining) > 0; {
				n := min(len(remaining), maxQuickWrite)
				if err := target.write(remaining[:n]); err != nil {
					t.Fatal(err)
				}
				remaining = remaining[n:]
			}
			if b := <-got; !bytes.Equal(b, append(bytes.Clone(largeBlock), largeBlock...)) {
				t.Errorf("%d bytes arrived, not those %d that were written", len(b), 2*len(largeBlock))
			}
		})
	}
}

// A relay writes all bytes that it reads until the end of the stream, and distinguishes the end from an error.
func TestPumpRelaysAll(t *testing.T) {
	largeBlock := make([]byte, 5<<20)
	_, _ = rand.Read(largeBlock)
	sourcePair, targetPair := sockets(t), sockets(t)
	for name := range sourcePair {
		t.Run(name, func(t *testing.T) {
			go func() {
				for _, n := range []int{1, 5, 100, 4 << 20} { // small ones, each awaited before the next, then a large one
					_, _ = sourcePair[name][0].Write(largeBlock[:n])
					time.Sleep(5 * time.Millisecond)
				}
				sourcePair[name][0].Close()
			}()
			pumpResult := make(chan error, 1)
			go func() {
				pumpResult <- copyOneWay(targetPair[name][0], sourcePair[name][1])
				targetPair[name][0].Close()
			}()
			got, _ := io.ReadAll(targetPair[name][1])
			want := bytes.Join([][]byte{largeBlock[:1], largeBlock[:5], largeBlock[:100], largeBlock[:4<<20]}, nil)
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes arrived, not those %d that were sent", len(got), len(want))
			}
			if err := <-pumpResult; err != nil {
				t.Errorf("the end is an error: %v", err)
			}
		})
	}
}

// A deadline ends a blocked read and a blocked write, on which [conn.end] relies.
func TestDeadlineEndsWaiting(t *testing.T) {
	for name, pair := range sockets(t) {
		t.Run(name, func(t *testing.T) {
			in, out := make(chan error, 1), make(chan error, 1)
			go func() {
				s := newSource(pair[0])
				_, _, err := s.take()
				in <- err
			}()
			go func() {
				s, b := newSink(pair[0]), make([]byte, maxQuickWrite)
				for {
					if err := s.write(b); err != nil { // nobody reads
						out <- err
						return
					}
				}
			}()
			time.Sleep(20 * time.Millisecond)
			_ = pair[0].SetDeadline(time.Unix(1, 0))
			for description, c := range map[string]chan error{"read": in, "write": out} {
				if err := <-c; !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v", description, err)
				}
			}
		})
	}
}

// Writing to a peer that has disconnected returns an error, and no signal ends the process.
func TestWriteToAClosedPeer(t *testing.T) {
	for name, pair := range sockets(t) {
		t.Run(name, func(t *testing.T) {
			pair[1].Close()
			target := newSink(pair[0])
			for range 1000 {
				if err := target.write([]byte("nobody reads this")); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
			t.Error("what nobody reads was written")
		})
	}
}
